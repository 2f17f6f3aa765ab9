import { packCall, unpackCall } from "../codec/msgpack.ts";
import type { AssistantRecord } from "../model/assistant.ts";
import { type ErrorCode, type FieldError, type RefusalResponse, ServiceError } from "../model/errors.ts";
import type { Clock } from "../ports/clock.ts";
import { type KnownClient, PeerLost, type PeerResponse, type Peers } from "../ports/peers.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { StoreItems } from "../ports/store-items.ts";
import type { HttpRequest, Reply } from "../ports/transport.ts";
import { type Assistants, isReachable } from "../service/assistants.ts";
import { clientHeaders, clientOfForwarded } from "./forwarded-headers.ts";
import { askPatiently } from "./patience.ts";
import type { ListingService } from "./process-service.ts";

/** The path of calls. No route has it. */
const CALL_PATH = "/heddle/call";

/** What one process offers another one. */
export interface CalledParts extends ListingService {
  readonly assistants: Pick<Assistants, "get" | "resolve">;
  readonly items: StoreItems;
  readonly metrics: { snapshot(): Promise<unknown> };
}

/** The functions that may be called: those that concern no single thread, and those whose thread is named in the body of a request. */
const CALLABLE: { readonly [Part in keyof CalledParts]: readonly (keyof CalledParts[Part] & string)[] } = {
  threads: ["create", "search", "count", "prune", "removeOf"],
  runs: ["search", "cancelEverywhere", "cancelSome"],
  crons: ["search", "count", "deleteOfAssistant"],
  webhooks: ["list", "retry", "remove"],
  inspection: ["liveThreads", "threadOf"],
  assistants: ["get", "resolve"],
  items: ["find", "heads", "vectors", "namespaces", "expiring", "change"],
  metrics: ["snapshot"],
};

/** Calls that must not be carried out twice. */
const ONCE: ReadonlySet<string> = new Set(["threads.create", "items.change"]);

type PartName = keyof CalledParts;

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
}

type Outcome = { readonly value: unknown } | { readonly error: PlainServiceError };

/** Whether a request is a call; then {@link serveCall} serves it. */
export const isProcessCall = ({ path }: HttpRequest): boolean => path === CALL_PATH;

/** Serves a call of another process. `partsOf`: what the client may use whose request made the other process call. */
export function serveCall(
  request: HttpRequest,
  reply: Reply,
  partsOf: (client: KnownClient) => CalledParts,
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
        return { error: { code, message, fields, response } };
      },
    )
    .then((outcome) => packCall(outcome))
    .then(
      (bytes) => reply.aborted || reply.send(200, {}, bytes),
      (cause: unknown) => reply.aborted || reply.send(500, {}, String(cause)),
    );
}

/** A result without asynchronous lists: they are read to their ends, also those that are members. */
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

/** The parts of another process, as a client may use them. Only what {@link CALLABLE} names can be called. */
export function createRemoteParts(deps: CallDeps, shard: number, client: KnownClient): CalledParts {
  const partOf = (part: PartName): object =>
    Object.fromEntries(
      CALLABLE[part].map((name) => [
        name,
        (...args: readonly unknown[]) => callPeer(deps, shard, client, { part, name, args }),
      ]),
    );
  const parts = Object.fromEntries(
    (Object.keys(CALLABLE) as PartName[]).map((part) => [part, partOf(part)]),
  ) as unknown as CalledParts;
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

/** A list that a call promises. */
async function* listOf<T>(called: unknown): AsyncGenerator<T> {
  yield* (await called) as readonly T[];
}

function callPeer(deps: CallDeps, shard: number, client: KnownClient, call: Call): Promise<unknown> {
  const request = {
    method: "POST",
    path: CALL_PATH,
    headers: clientHeaders(client),
    body: packCall(call),
  };
  const ask = async (): Promise<unknown> => {
    const response = await deps.peers.request(shard, request, new AbortController().signal);
    const bytes = await readAllBytes(response);
    if (response.status !== 200) throw new Error(`a process of this server failed: ${String(bytes)}`);
    const outcome = unpackCall(bytes) as Outcome;
    if ("value" in outcome) return outcome.value;
    const { code, message, fields, response: refusal } = outcome.error;
    throw new ServiceError(code, message, { fields, ...(refusal && { response: refusal }) });
  };
  // Metrics are asked for in short intervals; those of the processes that serve must not wait.
  if (call.part === "metrics") return ask();
  return askPatiently(deps, !ONCE.has(`${call.part}.${call.name}`), ask);
}

function readAllBytes(response: PeerResponse): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  return new Promise((resolve, reject) => {
    response.read({
      piece: (bytes) => pieces.push(bytes) > 0,
      end: () => resolve(Buffer.concat(pieces)),
      broken: () => reject(new PeerLost(true, undefined)),
    });
  });
}

/** Assistants that the home shard keeps, in another process. `own` knows the default assistants, as every process does. */
export function remoteAssistants(own: Assistants, home: CalledParts["assistants"]): Assistants {
  const permitted =
    (name: "get" | "resolve"): Assistants["get"] =>
    async (tenant, id, permits) => {
      const found: AssistantRecord = await home[name](tenant, id);
      if (isReachable(found, permits)) return found;
      throw new ServiceError("assistant.not_found", "Assistant not found");
    };
  return { ...own, get: permitted("get"), resolve: permitted("resolve") };
}
