import type { AuthUser } from "../model/auth-user.ts";
import { abortable } from "../ports/abortable.ts";
import type { Fetch, HttpApp } from "../ports/http-app.ts";
import type { HttpRequest, IncomingBody, Reply, ReplyHeaders } from "../ports/transport.ts";
import { assertSendable, respondToWebRequest, sendWebResponse, webRequestOf } from "./web-exchange.ts";

/** The part of Hono's applications by which their middleware can surround Heddle's own routes. */
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
  /** Headers of every response. */
  readonly headers: ReplyHeaders;
  /** Whether Heddle has a route for this request. */
  readonly hasRoute: boolean;
  /** Handles a request by Heddle's own routes. */
  next(request: HttpRequest, reply: Reply): void;
  /** Called with the status of a response that the application made without Heddle's routes. */
  count(status: number): void;
  /** Called with what the body of a response fails with when its first bytes are sent already. */
  onLateError(cause: unknown): void;
}

/**
 * A project's HTTP application before Heddle's own routes. What it does not answer goes to these: a request for which it returns nothing,
 * or 404 where Heddle has a route. Middleware of Hono surrounds them too, and may change the request and the response.
 */
export class HttpAppHandler {
  readonly #fetch: Fetch;
  readonly #isHono: boolean;
  readonly #openBody: () => IncomingBody;
  readonly #stop: AbortSignal;

  /**
   * `openBody`: opens what collects a body that the application gives on, which is in memory already. `stop`: aborted when the application
   * is waited for no longer.
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

  /** Answers a request. Rejects with what the application throws. */
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
      // A run has been started, or is waited for: its client is cut off, and does not start it again.
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
  // A router that is a proxy seems to have each method, but is no instance of a class.
  const isInstance = constructor !== undefined && constructor.prototype === Object.getPrototypeOf(app);
  return isInstance && [use, route, notFound, fetch].every((method) => typeof method === "function");
}

/**
 * The application within another one of its kind, for which Heddle's own routes are what is not found. It finds the user as LangGraph's
 * server gives it: `c.get("auth").user`.
 */
function honoFetch(app: HonoApp): Fetch {
  const outer = new (honoClassOf(app))();
  // The options `strict` and `getPath` of the application.
  if (app.getPath !== undefined) outer.getPath = app.getPath;
  outer.use(async (context, next) => {
    const user = context.env[USER];
    if (user !== undefined) context.set("auth", { user, scopes: user.permissions });
    await next();
  });
  outer.route("/", app);
  outer.notFound(async ({ req, env }) => {
    const { raw } = req;
    // Middleware has read the body: Hono keeps it, unless it was read from the web request itself.
    const body = raw.bodyUsed ? await req.arrayBuffer().catch(() => undefined) : undefined;
    return env[NEXT](body === undefined ? raw : new Request(raw.url, { ...initOf(raw), body }));
  });
  return (request, env) => outer.fetch(request, env);
}

const initOf = ({ method, headers, signal }: Request) => ({ method, headers, signal });

/** Hono's own class of an application, which may be an instance of a subclass, whose constructor may take any arguments. */
function honoClassOf(app: HonoApp): new () => HonoApp {
  let prototype = Object.getPrototypeOf(app) as { constructor: new () => HonoApp };
  for (;;) {
    const parent = Object.getPrototypeOf(prototype) as typeof prototype | null;
    // Hono's base class, which has the methods, needs a router.
    if (parent === null || Object.hasOwn(prototype, "route") || Object.hasOwn(parent, "route"))
      return prototype.constructor;
    prototype = parent;
  }
}
