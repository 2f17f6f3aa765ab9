import { packCall, unpackCall } from "../codec/value-encoding.ts";
import type { AssistantRecord } from "../model/assistant.ts";
import {
  type ErrorCode,
  type FieldError,
  type RefusalResponse,
  ServiceError,
  withCauses,
} from "../model/errors.ts";
import type { Clock } from "../ports/clock.ts";
import { type AuthenticatedClient, Cancellation, type Peers } from "../ports/peers.ts";
import { andThen } from "../ports/eventually.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { ShardMetrics } from "../ports/shard-metrics.ts";
import type { StoreItems } from "../ports/store-items.ts";
import type { HttpRequest, Reply } from "../ports/transport.ts";
import { type Assistants, isReachable, noAssistantMessage } from "../service/assistants.ts";
import type { AssistantCopies } from "./assistant-copies.ts";
import { clientHeaders, clientOfForwarded } from "./forwarded-headers.ts";
import { callWithRetry } from "./peer-retry.ts";
import { readAllBytes } from "./read-all-bytes.ts";
import type { ListingService } from "./multi-process-service.ts";

/** The HTTP path of calls between processes. No public route has this path. */
export const CALL_PATH = "/heddle/call";

/**
 * The longest time in milliseconds that a call for metrics waits. A stopped or blocked process must not delay the metrics of the others for
 * long.
 */
const METRICS_TIMEOUT_MS = 2_000;

/** The functions of a process that other processes may call. */
export interface CallableServices extends ListingService {
  readonly assistants: Pick<Assistants, "get" | "resolve">;
  readonly assistantCopies: { forget(): void | Promise<void> };
  readonly items: StoreItems;
  readonly metrics: ShardMetrics;
}

/**
 * The names of the functions that other processes may call. They serve requests that concern several shards, the assistants (stored in one
 * shard) or items of the store, or that name their thread only in the body. A request whose path or idempotency key selects one shard is
 * forwarded as HTTP instead.
 */
const CALLABLE: {
  readonly [Part in keyof CallableServices]: readonly (keyof CallableServices[Part] & string)[];
} = {
  threads: ["create", "search", "count", "prune", "removeOf"],
  runs: ["search", "cancelEverywhere", "cancelSome"],
  crons: ["search", "count", "deleteOfAssistant"],
  webhooks: ["list", "retry", "remove"],
  inspection: ["liveThreads", "threadOf"],
  assistants: ["get", "resolve"],
  assistantCopies: ["forget"],
  items: ["find", "heads", "vectors", "namespaces", "expiring", "change"],
  metrics: ["snapshot", "history", "status"],
};

/** Calls that must not be carried out twice. They are not repeated if the called process ends before it responds. */
const ONCE: ReadonlySet<string> = new Set(["threads.create", "items.change"]);

const UNAVAILABLE: ReadonlySet<ErrorCode> = new Set(["server.draining", "storage.unavailable"]);

type PartName = keyof CallableServices;

interface Call {
  readonly part: PartName;
  readonly name: string;
  readonly args: readonly unknown[];
}

interface PlainServiceError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly fields: readonly FieldError[];
  readonly response: RefusalResponse | undefined;
  /** The text of the error's cause, for the log of the process that called. The called process logs nothing. */
  readonly cause: string | undefined;
}

type Outcome = { readonly value: unknown } | { readonly error: PlainServiceError };

/** Whether a request is a call by another process, which {@link serveCall} handles. */
export const isProcessCall = ({ path }: HttpRequest): boolean => path === CALL_PATH;

/** Handles a call by another process. `partsOf` returns the services, restricted to what the client may do. */
export function serveCall(
  request: HttpRequest,
  reply: Reply,
  partsOf: (client: AuthenticatedClient) => CallableServices,
): void {
  const client = clientOfForwarded(request);
  const work = async (): Promise<unknown> => {
    const { part, name, args } = unpackCall(await request.body()) as Call;
    request.bodyRead?.();
    const allowed: readonly string[] = CALLABLE[part];
    if (client === undefined || !allowed.includes(name))
      throw new TypeError(`${part}.${name} cannot be called`);
    const called = partsOf(client)[part] as { [name: string]: (...args: readonly unknown[]) => unknown };
    return collected(await called[name]?.(...args));
  };
  work()
    .then(
      (value): Outcome => ({ value }),
      (cause: unknown): Outcome => {
        if (!(cause instanceof ServiceError)) throw cause;
        const { code, message, fields, response } = cause;
        const text = cause.cause === undefined ? undefined : withCauses(cause.cause);
        return { error: { code, message, fields, response, cause: text } };
      },
    )
    .then(async (outcome) => [statusOf(outcome), await packCall(outcome)] as const)
    .then(
      ([status, bytes]) => reply.aborted || reply.send(status, {}, bytes),
      (cause: unknown) => reply.aborted || reply.send(500, {}, String(cause)),
    );
}

/** Whether the response to a call says that the called process is stopping. */
export function isCallRefusedByStop(response: Uint8Array | string): boolean {
  const outcome = unpackCall(Buffer.from(response)) as Outcome;
  return "error" in outcome && outcome.error.code === "server.draining";
}

/** The HTTP status of an outcome: 503 if the process is stopping or its storage is unavailable, otherwise 200. */
const statusOf = (outcome: Outcome): number =>
  "error" in outcome && UNAVAILABLE.has(outcome.error.code) ? 503 : 200;

/** Replaces async iterables by arrays: the result itself, or its members. */
async function collected(result: unknown): Promise<unknown> {
  if (typeof result !== "object" || result === null) return result;
  if (Symbol.asyncIterator in result) {
    const all: unknown[] = [];
    for await (const entry of result as AsyncIterable<unknown>) all.push(entry);
    return all;
  }
  const lists = Object.entries(result).filter(
    ([, member]) => typeof member === "object" && member !== null && Symbol.asyncIterator in member,
  );
  if (lists.length === 0) return result;
  const read = await Promise.all(lists.map(async ([name, list]) => [name, await collected(list)] as const));
  return { ...result, ...Object.fromEntries(read) };
}

export interface CallDeps {
  readonly peers: Peers;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
}

/** The functions of the process that has a shard, restricted to what a client may do. Only those in {@link CALLABLE} can be called. */
export function createRemoteParts(
  deps: CallDeps,
  shard: number,
  client: AuthenticatedClient,
): CallableServices {
  const partOf = (part: PartName): object =>
    Object.fromEntries(
      CALLABLE[part].map((name) => [
        name,
        (...args: readonly unknown[]) => callPeer(deps, shard, client, { part, name, args }),
      ]),
    );
  const parts = Object.fromEntries(
    (Object.keys(CALLABLE) as PartName[]).map((part) => [part, partOf(part)]),
  ) as unknown as CallableServices;
  const { items } = parts;
  return {
    ...parts,
    items: {
      ...items,
      heads: (...args) => listOf(items.heads(...args)),
      vectors: (...args) => listOf(items.vectors(...args)),
      namespaces: (...args) => listOf(items.namespaces(...args)),
    },
  };
}

/** Converts the result of a call, a promise of an array, to an async iterable. */
async function* listOf<T>(called: unknown): AsyncGenerator<T> {
  yield* (await called) as readonly T[];
}

function callPeer(deps: CallDeps, shard: number, client: AuthenticatedClient, call: Call): Promise<unknown> {
  const request = {
    method: "POST",
    path: CALL_PATH,
    headers: clientHeaders(client),
    body: packCall(call),
  };
  const ask = async (cancellation?: Cancellation): Promise<unknown> => {
    const response = await deps.peers.request(shard, request, cancellation);
    const bytes = response.whole ?? (await readAllBytes(response));
    if (response.status !== 200 && response.status !== 503)
      throw new Error(`a process of this server failed: ${String(bytes)}`);
    const outcome = unpackCall(bytes) as Outcome;
    if ("value" in outcome) return outcome.value;
    const { code, message, fields, response: refusal, cause } = outcome.error;
    throw new ServiceError(code, message, { fields, cause, ...(refusal && { response: refusal }) });
  };
  if (call.part === "metrics") return askOnce(deps.scheduler, ask);
  return callWithRetry(deps, !ONCE.has(`${call.part}.${call.name}`), () => ask());
}

/** Calls a process once. Rejects after {@link METRICS_TIMEOUT_MS}. */
async function askOnce<T>(scheduler: Scheduler, ask: (cancellation: Cancellation) => Promise<T>): Promise<T> {
  const timeout = new Cancellation();
  const cancel = scheduler.after(METRICS_TIMEOUT_MS, () => timeout.cancel());
  try {
    return await ask(timeout);
  } finally {
    cancel();
  }
}

/**
 * The assistants in a process without the home shard (shard 0), which stores all assistants. `get` and `resolve` ask the process of the
 * home shard, unless there is a copy, and then check `permits` here. All other functions are those of `own`.
 * @param copies undefined while this process may have no copies
 */
export function remoteAssistants(
  own: Assistants,
  home: CallableServices["assistants"],
  copies: () => AssistantCopies | undefined,
): Assistants {
  const permitted =
    (name: "get" | "resolve"): Assistants["get"] =>
    (tenant, id, permits) => {
      const ask = async (): Promise<AssistantRecord> => home[name](tenant, id);
      const found = copies()?.find(JSON.stringify([name, tenant, id]), ask) ?? ask();
      return andThen(found, (record) => {
        if (isReachable(record, permits)) return record;
        // The same message as for an assistant that does not exist, so that the refusal does not reveal that this one does.
        const message = name === "get" ? "Assistant not found" : noAssistantMessage(id);
        throw new ServiceError("assistant.not_found", message);
      });
    };
  return { ...own, get: permitted("get"), resolve: permitted("resolve") };
}
