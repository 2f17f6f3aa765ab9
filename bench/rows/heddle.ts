import type { Server } from "../server.ts";
import { makeThreads, measure, perform, withServer, type Request } from "./measure.ts";
import type { Bench, Figures, Goal, Row } from "./row.ts";

export const waitPath = (thread: string) => `/threads/${thread}/runs/wait`;
const streamPath = (thread: string) => `/threads/${thread}/runs/stream`;

/** Returns the JSON body of a request that starts a run. */
export const body = (graph: string, input: unknown, more: object = {}) =>
  JSON.stringify({ assistant_id: graph, input, ...more });

/**
 * The number of runs after which V8 has optimised nearly everything. The first 2,000 runs took 1,100 us of CPU each,
 * the next 2,000 took 450, then 420, and from about run 6,000 on 320. Servers in production run for longer than that.
 */
const WARM_UP_RUNS = 8_000;

interface WarmUp {
  readonly graph?: string;
  /** The number of processes of the server; each of them performs about {@link WARM_UP_RUNS} runs. Default: one. */
  readonly processes?: number;
  /** How the requests are divided among connections; default: 64 connections, any request over any of them. */
  readonly over?: Pick<Request, "connections" | "partitioned">;
}

/**
 * Performs the runs before a measurement, after which the code is optimised, LevelDB has table files, and connections
 * have been opened.
 */
export async function warmUp(
  bench: Bench,
  server: Server,
  { graph = "one", processes = 1, over }: WarmUp = {},
): Promise<void> {
  const count = Math.max(20, Math.round(WARM_UP_RUNS * processes * bench.scale));
  const divided = over ?? { connections: Math.min(64, count) };
  const threads = await makeThreads(bench, server, count, divided);
  await perform(bench, server, {
    ...divided,
    method: "POST",
    paths: threads.map(waitPath),
    total: count,
    body: body(graph, { value: 1 }),
    answer: "text",
  });
}

interface Waits extends Pick<WarmUp, "graph" | "processes"> {
  readonly clients: number;
  readonly total: number;
  /**
   * `new`: a new thread for each run. `same`: one thread for each client. `own`: a new thread for each run, which the client that runs it has
   * made over the same connection.
   */
  readonly threads?: "new" | "same" | "own";
}

/** Warms up the server, then measures `runs/wait` requests. */
export async function measureWaits(
  bench: Bench,
  server: Server,
  { clients, total, threads = "new", graph = "one", processes = 1 }: Waits,
): Promise<Figures> {
  const count = Math.max(clients, Math.round(total * bench.scale));
  const over = threads === "own" ? { connections: clients, partitioned: true } : undefined;
  await warmUp(bench, server, { graph, processes, ...(over && { over }) });
  const ids = await makeThreads(bench, server, threads === "same" ? clients : count, over);
  const request: Request = {
    ...(over ?? { connections: clients }),
    method: "POST",
    paths: ids.map(waitPath),
    total: count,
    sticky: threads === "same",
    body: body(graph, { value: 1 }),
    answer: "text",
  };
  return (await measure(bench, server, request)).figures;
}

function wait(
  name: string,
  clients: number,
  total: number,
  threads: "new" | "same",
  { graph = "one", ...more }: Partial<Row> & { readonly graph?: string },
): Row {
  const kind = graph === "one" ? "one-node graph" : "machine that ends in its first macrostep";
  return {
    name,
    what: `runs/wait of a ${kind}, ${clients} client(s), ${threads === "new" ? "a new thread each time" : "one thread each"}`,
    run: (bench) =>
      withServer(bench.heddle(), (server) => measureWaits(bench, server, { clients, total, threads, graph })),
    ...more,
  };
}

/**
 * A row that measures `total` streamed runs. `each`: whether the row's figures are given for a request or for an
 * event.
 */
function streams(options: {
  readonly name: string;
  readonly what: string;
  readonly clients: number;
  readonly total: number;
  readonly body: (scale: number) => string;
  readonly each: "request" | "event";
  readonly target?: string;
  readonly goals?: readonly Goal[];
  readonly against?: Row["against"];
  readonly peer?: Row["peer"];
}): Row {
  const { name, what, clients, each, target, goals, against, peer } = options;
  return {
    name,
    what,
    ...(target === undefined ? {} : { target }),
    ...(goals === undefined ? {} : { goals }),
    ...(against === undefined ? {} : { against }),
    ...(peer === undefined ? {} : { peer }),
    run: (bench) =>
      withServer(bench.heddle(), async (server): Promise<Figures> => {
        await warmUp(bench, server);
        const { scale, share } = bench;
        const total = Math.max(clients, Math.round(options.total * (each === "event" ? share : scale)));
        const once = async () => {
          const ids = await makeThreads(bench, server, total);
          return {
            connections: clients,
            method: "POST",
            paths: ids.map(streamPath),
            total,
            // A peer gets a smaller share of the work: fewer streams if there are many clients, and a shorter stream
            // if there is one.
            body: options.body(clients === 1 ? scale : scale / share),
            answer: "events",
          } satisfies Request;
        };
        if (each === "event") await perform(bench, server, await once());
        return (await measure(bench, server, await once(), each)).figures;
      }),
  };
}

const shrink = (count: number, scale: number) => Math.max(10, Math.round(count * scale));

/** Rows that measure Heddle under load. */
export const heddleRows: readonly Row[] = [
  wait("wait-1", 1, 2_000, "new", {
    target: "p50 under 2 ms, durable (at most 3 fdatasync + 1 ms)",
    goals: [
      { figure: "p50_ms", most: 2 },
      { figure: "synced", most: 3 },
    ],
    peer: { share: 0.01, there: { p50_ms: 514 } },
    against: [
      { row: "uws-commit-1", figure: "p50_ms" },
      { row: "level-1", figure: "p50_ms" },
      { row: "fdatasync", figure: "p50_ms" },
    ],
  }),
  wait("wait-1-same", 1, 2_000, "same", { against: [{ row: "uws-commit-1", figure: "p50_ms" }] }),
  wait("wait-256", 256, 12_000, "new", {
    target: "3,000/s, p99 under 150 ms, under 330 us CPU a run",
    goals: [
      { figure: "per_s", least: 3_000 },
      { figure: "p99_ms", most: 150 },
      { figure: "cpu_us", most: 330 },
    ],
    peer: { share: 0.08, there: { per_s: 122, p99_ms: 5_700, cpu_us: 7_800 } },
    against: [
      { row: "uws-commit-256", figure: "per_s" },
      { row: "uws-commit-256", figure: "cpu_us" },
      { row: "level-256", figure: "per_s" },
    ],
  }),
  ...[1, 256].map((clients) =>
    wait(`machine-${clients}`, clients, clients === 1 ? 2_000 : 12_000, "new", {
      graph: "machine",
      target: "at most 1.3 times the CPU of the same run of a one-node graph",
      goals: [{ figure: "cpu_us", to: `wait-${clients}`, most: 1.3 }],
      against: [
        { row: `wait-${clients}`, figure: "cpu_us" },
        { row: `wait-${clients}`, figure: "p50_ms" },
        { row: `wait-${clients}`, figure: "per_s" },
      ],
    }),
  ),
  streams({
    name: "stream-1",
    what: "runs/stream of a one-node graph, one client: first event and end to end",
    clients: 1,
    total: 2_000,
    body: () => body("one", { value: 1 }, { stream_mode: ["values"] }),
    each: "request",
    target: "first event under 2 ms, end under 3 ms",
    goals: [
      { figure: "first_p50_ms", most: 2 },
      { figure: "p50_ms", most: 3 },
    ],
    peer: { share: 0.01, there: { first_p50_ms: 10.6, p50_ms: 512 } },
    against: [{ row: "uws-commit-1", figure: "p50_ms" }],
  }),
  streams({
    name: "custom-1",
    what: "one run that emits 200,000 custom events, data of 100 bytes, on one stream",
    clients: 1,
    total: 2,
    body: (scale) => body("emit", { count: shrink(200_000, scale), size: 100 }, { stream_mode: ["custom"] }),
    each: "event",
    target: "300,000 events/s",
    goals: [{ figure: "per_s", least: 300_000 }],
    peer: { share: 0.1, there: { per_s: 8_400 } },
    against: [{ row: "uws-events-1", figure: "per_s", there: 1_100_000 }],
  }),
  streams({
    name: "custom-100x200",
    what: "100 streams at once of 200 custom events each, thirty times over",
    clients: 100,
    total: 3_000,
    body: (scale) => body("emit", { count: shrink(200, scale), size: 100 }, { stream_mode: ["custom"] }),
    each: "event",
    target: "200,000 events/s",
    goals: [{ figure: "per_s", least: 200_000 }],
    // A thirtieth of the 3,000 runs: one run for each of the 100 clients.
    peer: { share: 1 / 30, there: { per_s: 8_200 } },
    against: [{ row: "uws-events-100", figure: "per_s", there: 1_800_000 }],
  }),
  streams({
    name: "tokens",
    what: "one run that streams 50,000 tokens, as messages-tuple events with their metadata",
    clients: 1,
    total: 2,
    body: (scale) =>
      body("tokens", { count: shrink(50_000, scale), messages: [] }, { stream_mode: ["messages-tuple"] }),
    each: "event",
    target: "150,000 tokens/s",
    goals: [{ figure: "per_s", least: 150_000 }],
    peer: { share: 0.1, there: { per_s: 4_100 } },
    against: [{ row: "uws-events-640", figure: "per_s" }],
  }),
  streams({
    name: "streams-5000",
    what: "5,000 streams open at once, each a run of 200 ms",
    clients: 5_000,
    total: 5_000,
    body: () => body("slow", { value: 1 }, { stream_mode: ["values"] }),
    each: "request",
    target: "all complete in under 10 s",
    // 500 runs a second: all 5,000 streams end within 10 s of the first request.
    goals: [{ figure: "per_s", least: 500 }],
  }),
  {
    name: "state-64",
    what: "GET state (1 KB) of 64 threads, 64 clients",
    target: "20,000/s",
    goals: [{ figure: "per_s", least: 20_000 }],
    peer: { share: 0.2, there: { per_s: 1_900 } },
    against: [{ row: "uws-64", figure: "per_s", there: 40_000 }],
    run: (bench) =>
      withServer(bench.heddle(), async (server) => {
        const ids = await makeThreads(bench, server, 64);
        await perform(bench, server, {
          connections: 64,
          method: "POST",
          paths: ids.map(waitPath),
          total: 64,
          body: body("one", { value: 1, text: "s".repeat(1000) }),
          answer: "text",
        });
        const request: Request = {
          connections: 64,
          method: "GET",
          paths: ids.map((id) => `/threads/${id}/state`),
          total: Math.max(64, Math.round(60_000 * bench.scale)),
          answer: "text",
        };
        await perform(bench, server, { ...request, total: Math.ceil(request.total / 4) });
        return (await measure(bench, server, request)).figures;
      }),
  },
];
