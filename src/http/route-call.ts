import { budgetOwnerOf, type AuthUser } from "../model/auth-user.ts";
import { parseUuid, pairedId } from "../model/ids.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { ByteStream, Headers, HttpRequest, Reply } from "../ports/transport.ts";
import type { TimeBudget, BudgetShare } from "../ports/time-budget.ts";
import { readBodyList, readBodyObject, type RawBody } from "../schemas/read-body.ts";
import type { Service } from "../service/service.ts";
import { invalidUuid, JSON_HEADERS } from "../schemas/error-to-response.ts";
import { QueryParams } from "../schemas/query-params.ts";
import { type StatusCounts, countResponse } from "./response-counts.ts";

/** The client of a request, and the response headers for this client. */
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
  /** Whether the client may read data of all tenants and users: it has an API key, or the server needs no credentials. */
  readonly hasServerAccess: boolean;
  /** The service, restricted to what this client may do. */
  readonly service: Service;
  /** The id of the request, in the log and in the response. */
  readonly id: string;
  /** Headers added to every response. */
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

  /** Reads the request body, a JSON object. A member with the value null counts as missing, unless `nulls` is `kept`. */
  body(nulls?: "kept"): Promise<RawBody> {
    return readBodyObject(this.request, this, nulls);
  }

  list(): Promise<readonly RawBody[]> {
    return readBodyList(this.request, this);
  }

  /** The name under which the time and memory used by this request are counted: its user's, or its tenant's if it has no user. */
  get budgetOwner(): string {
    return budgetOwnerOf(this.tenant, this.user);
  }

  /** This client's share of the time budget, which limits how long its work may hold a turn of the event loop. */
  workShare(): BudgetShare {
    return this.#budget.share(this.budgetOwner);
  }

  /** The path parameter at index `n`, counted from 0; empty if there is none. */
  param(n: number): string {
    return this.#params[n] ?? "";
  }

  /** The thread whose id is the path's first parameter. @throws ServiceError `validation.failed` if the parameter is not a UUID */
  thread(): ThreadKey {
    return { tenant: this.tenant, thread: this.uuid(0, "thread_id") };
  }

  /** The id of the run: the path's second parameter. @throws ServiceError `validation.failed` if the parameter is not a UUID */
  run(): string {
    return this.uuid(1, "run_id");
  }

  /**
   * The id of the run, which is the first parameter of a path without a thread, and the key of the temporary thread that was created for
   * this run.
   * @throws ServiceError `validation.failed` if the parameter is not a UUID
   */
  threadlessRun(): { readonly key: ThreadKey; readonly id: string } {
    const id = this.uuid(0, "run_id");
    return { key: { tenant: this.tenant, thread: pairedId(id) }, id };
  }

  /**
   * The path parameter at index `n`, counted from 0, as a UUID. `name`: what the error calls the parameter.
   * @throws ServiceError `validation.failed`
   */
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

/** `Object.assign`, because two object spreads take ten times as long. */
const merged = (headers: Headers, extra: Headers): Headers => Object.assign({}, headers, extra);
