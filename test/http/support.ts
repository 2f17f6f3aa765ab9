import { someRun } from "../fixtures/runs.ts";
import { AccessControl } from "../../src/access/access-control.ts";
import { createRequestHandler } from "../../src/http/handler.ts";
import { TrafficCounts } from "../../src/http/response-counts.ts";
import type { AssistantRecord } from "../../src/model/assistant.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { RunRecord } from "../../src/model/run.ts";
import type { ThreadKey } from "../../src/model/thread.ts";
import { ResponseMemoryBudget } from "../../src/stream/response-memory-budget.ts";
import { TimeBudget } from "../../src/ports/time-budget.ts";
import type { Logger, LogLevel } from "../../src/ports/logger.ts";
import type { Scheduler } from "../../src/ports/scheduler.ts";
import type { ByteStream, Headers, HttpRequest, Reply } from "../../src/ports/transport.ts";
import { defaultAssistant } from "../../src/service/default-assistants.ts";
import type { GraphSchemas } from "../../src/model/graph-schemas.ts";
import { runDraftOf, type RunRequest } from "../../src/service/run-draft.ts";
import { apiRun } from "../../src/service/api-records.ts";
import type { Service } from "../../src/service/service.ts";
import { newThreadRecord } from "../../src/model/thread.ts";
import { SimulatedClock } from "../simulation/clock.ts";
import { SimulatedRandom } from "../simulation/random.ts";
import type { NoEventsReason, Reader } from "../../src/stream/run-reader.ts";

export const THREAD = "01a1f8d4-0000-7000-8000-000000000001";
export const RUN = "01a1f8d4-0000-7000-8000-000000000002";
const NOW = Date.UTC(2026, 10, 20, 12, 0, 0, 5);

/** A response, as far as it has been sent. */
export class Answer implements Reply, ByteStream {
  status = 0;
  headers: Headers = {};
  text = "";
  ended = false;
  cut = false;
  streamed = false;
  aborted = false;
  #onAbort: () => void = () => undefined;

  send(status: number, headers: Headers, body: Uint8Array | string = ""): void {
    if (this.status !== 0) throw new TypeError("answered twice");
    this.status = status;
    this.headers = headers;
    this.text = String(body);
    this.ended = true;
  }

  open(status: number, headers: Headers, first: Uint8Array | string): ByteStream {
    if (this.status !== 0) throw new TypeError("answered twice");
    this.status = status;
    this.headers = headers;
    this.streamed = true;
    this.write(first);
    return this;
  }

  write(piece: Uint8Array | string): boolean {
    this.text += Buffer.from(piece as Uint8Array).toString();
    return true;
  }

  onDrain(): void {}

  end(piece: Uint8Array | string = ""): void {
    this.ended = true;
    this.write(piece);
  }

  close(): void {
    this.cut = true;
  }

  onAbort(listener: () => void): void {
    this.#onAbort = listener;
  }

  /** The client disconnects. */
  abort(): void {
    this.aborted = true;
    this.#onAbort();
  }

  get json(): JsonObject {
    return JSON.parse(this.text) as JsonObject;
  }

  async until(there: (answer: this) => boolean): Promise<this> {
    while (!there(this)) await new Promise<void>((resolve) => setImmediate(resolve));
    return this;
  }
}

async function* each<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

/** Timers that fire on request. */
export class Timers implements Scheduler {
  #due: { readonly at: number; readonly task: () => void }[] = [];
  #now = 0;

  soon(task: () => void): void {
    this.after(0, task);
  }

  after(ms: number, task: () => void): () => void {
    const timer = { at: this.#now + ms, task };
    this.#due.push(timer);
    return () => {
      this.#due = this.#due.filter((other) => other !== timer);
    };
  }

  get pending(): number {
    return this.#due.length;
  }

  advance(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const next = this.#due.toSorted((a, b) => a.at - b.at).find(({ at }) => at <= end);
      if (next === undefined) break;
      this.#due = this.#due.filter((timer) => timer !== next);
      this.#now = Math.max(this.#now, next.at);
      next.task();
    }
    this.#now = end;
  }

  /** Lets time pass in which nothing runs, as while the machine is suspended. Timers that are due then fire late, at the next advance. */
  pause(ms: number): void {
    this.#now += ms;
  }
}

const clock = new SimulatedClock();
const accessAndClock = {
  clock,
  access: new AccessControl({}, { clock, random: new SimulatedRandom(1) }),
  requestLog: "debug",
  newId: () => "request-1",
  ready: async () => ({}),
  inspect: { values: false, viewer: "https://viewer.test/" },
  dashboard: { prices: {}, has_users: false },
  pages: () => undefined,
  components: () => undefined,
  metricsHistory: async () => ({}),
  metrics: async () => ({ type: "text/plain", body: "figures" }),
  about: { version: "0.0.0", transport: { kind: "node", why: "asked for" } },
} as const;

export const agent: AssistantRecord = defaultAssistant("agent", NOW);

export function runRecord(request: RunRequest = { assistant_id: "agent" }): RunRecord {
  const draft = runDraftOf(RUN, request, agent, newThreadRecord(THREAD, NOW, {}));
  return someRun({ ...draft, thread_id: THREAD, created_at: NOW, updated_at: NOW });
}

/** A reader without events, which reports the position from which it was asked to read. */
class EmptyReader implements Reader {
  readonly isCut = false;
  readonly cursor = -1;
  readonly #reason: NoEventsReason;

  constructor(reason: NoEventsReason) {
    this.#reason = reason;
  }

  next(): NoEventsReason {
    return this.#reason;
  }

  onReady(): void {}
  rest(): void {}
  rewind(): void {}
  close(): void {}
}

const noSchemas: GraphSchemas = {
  graph_id: "agent",
  input_schema: null,
  output_schema: null,
  state_schema: null,
  config_schema: null,
  context_schema: null,
};

export interface Asked {
  readonly what: string;
  readonly args: readonly unknown[];
}

/** The HTTP API over a service that only records its calls. */
export function protocol(
  overrides: { readonly [room in keyof Service]?: Partial<Service[room]> } = {},
  reason: NoEventsReason = "end",
) {
  const asked: Asked[] = [];
  const logged: string[] = [];
  const timers = new Timers();
  const note = (what: string, ...args: unknown[]) => void asked.push({ what, args });
  const service: Service = {
    store: {
      batch: async (...args) => {
        note("store.batch", ...args);
        return [null] as never;
      },
      ...overrides.store,
    },
    threads: {
      create: async (...args) => (note("threads.create", ...args), { thread_id: THREAD }),
      get: async (...args) => (note("threads.get", ...args), { thread_id: THREAD }),
      record: () => newThreadRecord(THREAD, NOW, {}),
      search: async (...args) => (
        note("threads.search", ...args),
        { threads: each([{ thread_id: THREAD, status: "idle" }]), total: 1, next: undefined }
      ),
      count: async (...args) => (note("threads.count", ...args), 1),
      update: async (...args) => (note("threads.update", ...args), { thread_id: THREAD }),
      remove: async (...args) => note("threads.remove", ...args),
      removeOf: async (...args) => note("threads.removeOf", ...args),
      storedSizes: async (...args) => (note("threads.storage", ...args), { thread_id: THREAD }),
      copy: async (...args) => (note("threads.copy", ...args), { thread_id: THREAD }),
      prune: async (...args) => (note("threads.prune", ...args), 1),
      state: async (...args) => (note("threads.state", ...args), { values: {} }),
      stateText: async (...args) => (note("threads.state", ...args), '{"values":{}}'),
      ...overrides.threads,
    },
    states: {
      at: async (...args) => (note("states.at", ...args), { values: {} }),
      history: (...args) => (note("states.history", ...args), each([])),
      update: async (...args) => (note("states.update", ...args), { checkpoint: {} }),
      pendingInterrupts: async (...args) => (note("states.questions", ...args), []),
      ...overrides.states,
    },
    runs: {
      start: async (key: ThreadKey, request) => (note("runs.start", key, request), runRecord(request)),
      startAlone: async (tenant, request, temporary) => (
        note("runs.startAlone", tenant, request, temporary),
        runRecord(request)
      ),
      startBatch: async (...args) => (note("runs.startBatch", ...args), args[1].map(runRecord)),
      lastEventAt: async () => -1,
      cancelAll: async (...args) => note("runs.cancelAll", ...args),
      cancelSome: async (...args) => note("runs.cancelSome", ...args),
      cancelEverywhere: async (...args) => note("runs.cancelEverywhere", ...args),
      remove: async (...args) => note("runs.remove", ...args),
      keepForReading: (_, read) => read(),
      findForReading: async (...args) => (note("runs.findToRead", ...args), runRecord()),
      find: async (...args) => (note("runs.find", ...args), runRecord()),
      show: (_, run) => apiRun(run, { isRunning: true, position: undefined }),
      list: async (...args) => (note("runs.list", ...args), { runs: each([runRecord()]), total: 1 }),
      search: async (...args) => (note("runs.search", ...args), { runs: [], cursors: [], next: undefined }),
      result: async (...args) => (note("runs.result", ...args), { done: true }),
      cancel: async (...args) => note("runs.cancel", ...args),
      cancelOnDisconnect: () => undefined,
      follow: (...args) => (note("runs.follow", ...args), new EmptyReader(reason)),
      followThread: () => Promise.reject(new TypeError("not asked for")),
      ...overrides.runs,
    },
    assistants: {
      defaultId: () => undefined,
      get: (...args) => (note("assistants.get", ...args), agent),
      resolve: (...args) => (note("assistants.resolve", ...args), agent),
      create: async (...args) => (note("assistants.create", ...args), agent),
      update: async (...args) => (note("assistants.update", ...args), agent),
      versions: async (...args) => (note("assistants.versions", ...args), [agent]),
      setLatest: async (...args) => (note("assistants.setLatest", ...args), agent),
      delete: async (...args) => (note("assistants.delete", ...args), agent),
      count: async (...args) => (note("assistants.count", ...args), 7),
      search: async (...args) => (note("assistants.search", ...args), { assistants: [agent], total: 1 }),
      ...overrides.assistants,
    },
    events: {
      possible: async (...args) => (
        note("events.possible", ...args),
        { events: [], state: null, interrupt_id: null }
      ),
      send: async (...args) => (note("events.send", ...args), runRecord()),
      ...overrides.events,
    },
    protocol: {
      start: async (...args) => (note("protocol.start", ...args), runRecord()),
      respond: async (...args) => (note("protocol.respond", ...args), runRecord()),
      fork: async (...args) => (note("protocol.fork", ...args), runRecord()),
      state: async (...args) => (note("protocol.state", ...args), { values: {} }),
      checkpoints: async (...args) => (note("protocol.checkpoints", ...args), []),
      tree: async (...args) => (note("protocol.tree", ...args), {}),
      lastEventNumber: async () => 7,
      follow: () => Promise.reject(new TypeError("not asked for")),
      ...overrides.protocol,
    },
    drawings: {
      drawing: async (...args) => (note("drawings.drawing", ...args), { nodes: [], edges: [] }),
      schemas: async (...args) => (note("drawings.schemas", ...args), noSchemas),
      subgraphs: async (...args) => (note("drawings.subgraphs", ...args), { sub: noSchemas }),
      ...overrides.drawings,
    },
    crons: {
      create: () => Promise.reject(new TypeError("not asked for")),
      createOn: () => Promise.reject(new TypeError("not asked for")),
      get: () => Promise.reject(new TypeError("not asked for")),
      update: () => Promise.reject(new TypeError("not asked for")),
      delete: () => Promise.reject(new TypeError("not asked for")),
      search: async (...args) => (note("crons.search", ...args), { crons: [], total: 0 }),
      count: async (...args) => (note("crons.count", ...args), 0),
      deleteOfAssistant: async () => undefined,
      watch: () => undefined,
      isUseless: async () => false,
      deleteOfThread: async (...args) => note("crons.forgetOf", ...args),
      ...overrides.crons,
    },
    webhooks: {
      accept: (request) => (note("webhooks.accept", request), request),
      list: async (...args) => (note("webhooks.list", ...args), []),
      retry: async (...args) => (note("webhooks.retry", ...args), { id: RUN }),
      remove: async (...args) => note("webhooks.remove", ...args),
      ...overrides.webhooks,
    },
    inspection: {
      machines: () => [],
      machine: () => undefined,
      liveThreads: (...args) => (note("inspection.live", ...args), []),
      threadOf: async (...args) => (note("inspection.threadOf", ...args), THREAD),
      storedActors: async () => [],
      actors: async (...args) => (note("inspection.actors", ...args), []),
      watch: () => () => undefined,
      scopeOf: (scope) => scope,
      ...overrides.inspection,
    },
  };
  const log = (level: LogLevel) => (message: string, fields: unknown) =>
    void logged.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const logger: Logger = {
    isOn: () => false,
    debug: log("debug"),
    info: log("info"),
    warn: log("warn"),
    error: log("error"),
  };
  const handler = createRequestHandler({
    service,
    scheduler: timers,
    budget: new TimeBudget(accessAndClock.clock, timers),
    memory: new ResponseMemoryBudget(timers),
    streamMemory: new ResponseMemoryBudget(timers),
    logger,
    traffic: new TrafficCounts(),
    configurableHeaders: () => undefined,
    ...accessAndClock,
  });

  /** Sends a request and returns its response at once, as far as it has been sent. */
  function begin(method: string, url: string, body?: unknown, headers: Headers = {}): Answer {
    const [path = "", query = ""] = url.split("?");
    const bytes = body === undefined ? "" : typeof body === "string" ? body : JSON.stringify(body);
    const request: HttpRequest = {
      method,
      path,
      query,
      header: (name) => ({ host: "localhost", ...headers })[name],
      headers: () => Object.entries({ host: "localhost", ...headers }),
      body: async () => Buffer.from(bytes),
    };
    const answer = new Answer();
    handler(request, answer);
    return answer;
  }

  const ask = (...args: Parameters<typeof begin>): Promise<Answer> =>
    begin(...args).until((answer) => answer.ended || answer.cut);

  return { ask, begin, asked, logged, timers, clock };
}
