import type { AuthUser } from "../model/auth-user.ts";
import { abortable } from "../ports/abortable.ts";
import type { Fetch, HttpApp } from "../ports/http-app.ts";
import type { HttpRequest, IncomingBody, Reply, ReplyHeaders } from "../ports/transport.ts";
import { assertSendable, respondToWebRequest, sendWebResponse, webRequestOf } from "./web-exchange.ts";

/** The methods of a Hono application that {@link honoFetch} uses to put the application's middleware around Heddle's own routes. */
interface HonoApp {
  getPath?: (request: Request) => string;
  fetch: Fetch;
  use(handler: (context: HonoContext, next: () => Promise<void>) => Promise<void>): unknown;
  route(path: string, app: HonoApp): unknown;
  notFound(handler: (context: HonoContext) => Promise<Response>): unknown;
}
interface HonoContext {
  readonly env: { readonly [NEXT]: Next; readonly [USER]: AuthUser | undefined };
  readonly req: { readonly raw: Request; arrayBuffer(): Promise<ArrayBuffer> };
  set(name: string, value: unknown): void;
}

type Next = (request: Request) => Promise<Response>;

const NEXT = Symbol("Heddle's own routes");
const USER = Symbol("the request's user");

export interface HttpAppCall {
  readonly request: HttpRequest;
  readonly reply: Reply;
  readonly tenant: string | undefined;
  /** The user of the request, according to the project's authentication. */
  readonly user: AuthUser | undefined;
  /** Headers that are added to every response, such as CORS headers and the request id. */
  readonly headers: ReplyHeaders;
  /** Whether Heddle has a route for this request. */
  readonly hasRoute: boolean;
  /** Handles a request by Heddle's own routes. */
  next(request: HttpRequest, reply: Reply): void;
  /** Called with the status of a response that the application made without calling Heddle's routes. */
  count(status: number): void;
  /** Called with an error that breaks off a response body after its first bytes were sent. */
  onLateError(cause: unknown): void;
}

/**
 * Runs a project's HTTP application before Heddle's own routes. Heddle's routes handle a request if the application returns nothing for it,
 * or if an application that is not a Hono application returns 404 although Heddle has a route. Hono middleware also wraps Heddle's routes,
 * and may change their requests and responses.
 */
export class HttpAppHandler {
  readonly #fetch: Fetch;
  readonly #isHono: boolean;
  readonly #openBody: () => IncomingBody;
  readonly #stop: AbortSignal;

  /**
   * `openBody` opens a buffer for the body of a request that the application passes on to Heddle's routes; all of the body is in memory by
   * then. `stop` is aborted when the server, while it shuts down, stops waiting for the application.
   */
  constructor(app: HttpApp, openBody: () => IncomingBody, stop: AbortSignal) {
    this.#isHono = isHono(app);
    this.#fetch = isHono(app)
      ? honoFetch(app)
      : typeof app === "function"
        ? app
        : (...given) => app.fetch(...given);
    this.#openBody = openBody;
    this.#stop = stop;
  }

  /** Responds to a request. Rejects with the error that the application throws. */
  async handle(asked: HttpAppCall): Promise<void> {
    const { request, reply, tenant, user, headers, hasRoute, next, count, onLateError } = asked;
    const left = new AbortController();
    const onAbort = () => left.abort();
    reply.onAbort(onAbort);
    // A body can be read only once; the application and Heddle's routes share it.
    let body: Promise<Uint8Array> | undefined;
    const readBody = async (): Promise<Uint8Array> => {
      const bytes = await (body ??= request.body(tenant));
      request.bodyRead?.();
      return bytes;
    };
    const webRequest = () => webRequestOf(request, readBody, left.signal);
    let isOwnRoute = false;
    const ownRoutes: Next = (made) => {
      isOwnRoute = true;
      return respondToWebRequest(next, made, this.#openBody);
    };
    const answer = Promise.resolve(this.#fetch(webRequest(), { [NEXT]: ownRoutes, [USER]: user }));
    let response = await abortable(answer, this.#stop).catch((cause: unknown) => {
      // If Heddle's own routes already handle the request, they may have started a run. An error response would make the client send the
      // request again, and so start a second run. So the application's response is awaited; the server closes the connection when it shuts
      // down.
      if (isOwnRoute) return answer;
      throw cause;
    });
    const isUnanswered = response === undefined || (response.status === 404 && hasRoute && !this.#isHono);
    if (isUnanswered) response = await ownRoutes(webRequest());
    if (response === undefined || reply.aborted) return;
    assertSendable(response);
    if (!isOwnRoute) count(response.status);
    const isHead = request.method === "HEAD";
    await sendWebResponse(response, reply, { headers, isHead, onAbort, onLateError });
  }
}

function isHono(app: HttpApp): app is HonoApp {
  const { use, route, notFound, fetch, constructor } = app as Partial<HonoApp> & {
    constructor?: { prototype?: unknown };
  };
  // Requires that the application is an instance of its class. A proxy that answers every property name seems to have all four methods, but
  // is not such an instance.
  const isInstance = constructor !== undefined && constructor.prototype === Object.getPrototypeOf(app);
  return isInstance && [use, route, notFound, fetch].every((method) => typeof method === "function");
}

/**
 * Wraps the application in a second Hono application, whose `notFound` handler calls Heddle's own routes. The project's handlers find the
 * user where LangGraph's server puts it: `c.get("auth").user`.
 */
function honoFetch(app: HonoApp): Fetch {
  const outer = new (honoClassOf(app))();
  // Hono stores the options `strict` and `getPath` of an application in its function `getPath`, so the outer application gets the same
  // function.
  if (app.getPath !== undefined) outer.getPath = app.getPath;
  outer.use(async (context, next) => {
    const user = context.env[USER];
    if (user !== undefined) context.set("auth", { user, scopes: user.permissions });
    await next();
  });
  outer.route("/", app);
  outer.notFound(async ({ req, env }) => {
    const { raw } = req;
    // If middleware has read the body with a method of Hono's request, Hono has cached the body. If middleware has read the body of `raw`
    // itself, the body cannot be read again.
    const body = raw.bodyUsed ? await req.arrayBuffer().catch(() => undefined) : undefined;
    return env[NEXT](body === undefined ? raw : new Request(raw.url, { ...initOf(raw), body }));
  });
  return (request, env) => outer.fetch(request, env);
}

const initOf = ({ method, headers, signal }: Request) => ({ method, headers, signal });

/** Hono's own application class. The application may be an instance of a subclass, whose constructor arguments are unknown. */
function honoClassOf(app: HonoApp): new () => HonoApp {
  let prototype = Object.getPrototypeOf(app) as { constructor: new () => HonoApp };
  for (;;) {
    const parent = Object.getPrototypeOf(prototype) as typeof prototype | null;
    // Stops below the class that defines `route`: that is Hono's base class, which cannot be constructed without a router.
    if (parent === null || Object.hasOwn(prototype, "route") || Object.hasOwn(parent, "route"))
      return prototype.constructor;
    prototype = parent;
  }
}
