import { budgetOwnerOf, type AuthUser } from "../model/auth-user.ts";
import { parseUuid, pairedId } from "../model/ids.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { ByteStream, Headers, HttpRequest, Reply } from "../ports/transport.ts";
import type { TimeBudget, BudgetShare } from "../ports/time-budget.ts";
import { readObjectList, readObject, type RawBody } from "../schemas/body.ts";
import type { Service } from "../service/service.ts";
import { invalidUuid, JSON_HEADERS } from "../schemas/error-to-response.ts";
import { QueryParams } from "../schemas/query.ts";
import { type StatusCounts, countResponse } from "./response-counts.ts";

/** The client of a request, and the response headers for it. */
export interface CallClient {
  readonly tenant: string;
  /** The user who sent the request. Undefined if the client has an API key, or if the server needs no credentials. */
  readonly user: AuthUser | undefined;
  readonly service: Service;
  /** Whether the client is authenticated, or needs no credentials on this server. Only public routes serve other clients. */
  readonly isKnown: boolean;
  readonly id: string;
  readonly headers: Headers;
}

/** A request while a route handles it. */
export class RouteCall {
  readonly request: HttpRequest;
  readonly reply: Reply;
  readonly tenant: string;
  readonly user: AuthUser | undefined;
  /** Whether the client may read what concerns all tenants and users: it has an API key, or needs no credentials. */
  readonly hasServerAccess: boolean;
  /** The service, restricted to what this client may do. */
  readonly service: Service;
  /** The id of the request, in the log and in the response. */
  readonly id: string;
  /** Headers of every response. */
  readonly #extra: Headers;
  readonly #params: readonly string[];
  readonly #answers: StatusCounts;
  readonly #budget: TimeBudget;
  #query: QueryParams | undefined;
  #answered = false;

  constructor(
    request: HttpRequest,
    reply: Reply,
    client: CallClient,
    params: readonly string[],
    answers: StatusCounts,
    budget: TimeBudget,
  ) {
    this.request = request;
    this.reply = reply;
    this.tenant = client.tenant;
    this.user = client.user;
    this.hasServerAccess = client.isKnown && client.user === undefined;
    this.service = client.service;
    this.id = client.id;
    this.#extra = client.headers;
    this.#params = params;
    this.#answers = answers;
    this.#budget = budget;
  }

  get answered(): boolean {
    return this.#answered;
  }

  get isHead(): boolean {
    return this.request.method === "HEAD";
  }

  get query(): QueryParams {
    return (this.#query ??= new QueryParams(this.request.query));
  }

  /** Reads the body, a JSON object. A member that is null counts as missing, unless `nulls` is `kept`. */
  body(nulls?: "kept"): Promise<RawBody> {
    return readObject(this.request, this, nulls);
  }

  list(): Promise<readonly RawBody[]> {
    return readObjectList(this.request, this);
  }

  /** The name under which this request uses the time and memory budgets: that of its user, or of its tenant if there are no users. */
  get budgetOwner(): string {
    return budgetOwnerOf(this.tenant, this.user);
  }

  /** This client's share of the time budget: it limits how much of a turn of the event loop long work of this request takes. */
  workShare(): BudgetShare {
    return this.#budget.share(this.budgetOwner);
  }

  /** The path parameter at index `n`, counted from 0; empty if there is none. */
  param(n: number): string {
    return this.#params[n] ?? "";
  }

  /** The thread named in the path. @throws ServiceError `validation.failed` */
  thread(): ThreadKey {
    return { tenant: this.tenant, thread: this.uuid(0, "thread_id") };
  }

  /** The run named in the path. @throws ServiceError `validation.failed` */
  run(): string {
    return this.uuid(1, "run_id");
  }

  /**
   * The run named in a path without a thread, and the temporary thread that was made for this run.
   * @throws ServiceError `validation.failed`
   */
  threadlessRun(): { readonly key: ThreadKey; readonly id: string } {
    const id = this.uuid(0, "run_id");
    return { key: { tenant: this.tenant, thread: pairedId(id) }, id };
  }

  /** A UUID in the path. @throws ServiceError `validation.failed` */
  uuid(n: number, name: string): string {
    const id = parseUuid(this.#params[n]);
    if (id === undefined) throw invalidUuid(name);
    return id;
  }

  json(body: unknown, headers: Headers = JSON_HEADERS): void {
    this.send(200, headers, JSON.stringify(body));
  }

  send(status: number, headers: Headers, body?: string): void {
    this.#answered = true;
    countResponse(this.#answers, status);
    this.reply.send(status, merged(headers, this.#extra), body);
  }

  open(headers: Headers, first: Uint8Array | string): ByteStream {
    this.#answered = true;
    countResponse(this.#answers, 200);
    return this.reply.open(200, merged(headers, this.#extra), first);
  }
}

/** Uses `Object.assign`: two spreads cost ten times as much. */
const merged = (headers: Headers, extra: Headers): Headers => Object.assign({}, headers, extra);
