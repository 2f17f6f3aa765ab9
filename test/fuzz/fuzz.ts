import * as fc from "fast-check";
import { createApp } from "../../src/app.ts";
import approval from "../../src/demo/approval.ts";
import { graph, list, value } from "../../src/index.ts";
import { createLogger } from "../../src/platform/log.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { readApi } from "./api.ts";
import { type Request, requestFor } from "./requests.ts";
import { Session } from "./session.ts";
import { speak, type Talk, talkFor } from "./sockets.ts";

/** A graph whose runs end at once, in each possible way. */
const fuzz = graph({
  state: {
    log: list<unknown>(),
    a: value<unknown>(null),
    ask: value<unknown>(null),
    fail: value<unknown>(null),
  },
  nodes: {
    begin: async ({ fail, a }) => {
      if (fail === true) throw new Error("as it was asked to");
      return { log: [a] };
    },
    question: async ({ ask }, ctx) => (ask === true ? { log: [ctx.interrupt("well?")] } : {}),
  },
  edges: { start: "begin", begin: "question" },
});

export interface FuzzOptions {
  readonly requests: number;
  readonly seed: number;
  readonly transport: "uws" | "node";
  /** fast-check's path to a counterexample, to replay it alone. */
  readonly path?: string;
  readonly progress?: (sent: number) => void;
  /** Called with a wrong answer at once, before it is shrunk. */
  readonly found?: (finding: string) => void;
}

export interface FuzzOutcome {
  readonly sent: number;
  readonly statuses: ReadonlyMap<number, number>;
  /** The finding, with the requests that lead to it and the seed; undefined: none. */
  readonly finding: string | undefined;
}

/** The largest number of requests in a sequence. Later requests use ids from earlier answers. */
const LONGEST_SEQUENCE = 12;
/** Milliseconds for shrinking a finding: each attempt sends its requests again. */
const LONGEST_SHRINKING = 60_000;

/** Sends sequences of requests to its own server and checks each answer, until one is wrong. */
export async function fuzzServer({
  requests,
  seed,
  transport,
  path,
  progress,
  found,
}: FuzzOptions): Promise<FuzzOutcome> {
  const errors: string[] = [];
  const logger = createLogger({ clock: systemClock, level: "error", write: (line) => errors.push(line) });
  const app = await createApp({ graphs: { fuzz, approval }, transport, logger });
  const operations = (await readApi(app.url)).filter(({ path: at }) => at !== "/metrics");
  const session = new Session(app.url, errors);
  // The operation that creates the threads that other requests need.
  const creation = operations.find(({ path: at, method }) => at === "/threads" && method === "POST");
  const step: fc.Arbitrary<Request | Talk> = fc.oneof(
    { weight: 20, arbitrary: fc.constantFrom(...operations).chain(requestFor) },
    ...(creation === undefined ? [] : [{ weight: 3, arbitrary: requestFor(creation) }]),
    { weight: 1, arbitrary: talkFor(operations) },
  );
  const sequences = fc.array(step, { minLength: 1, maxLength: LONGEST_SEQUENCE, size: "max" });
  let sent = 0;
  let shrinksUntil = Infinity;
  let first = "";
  try {
    const outcome = await fc.check(
      fc.asyncProperty(sequences, async (steps) => {
        fc.pre(performance.now() < shrinksUntil);
        for (const one of steps) {
          sent++;
          try {
            if ("messages" in one) await speak(app.url, session, one);
            else await session.send(one);
          } catch (error) {
            if (shrinksUntil === Infinity) {
              shrinksUntil = performance.now() + LONGEST_SHRINKING;
              first = error instanceof Error ? error.message : String(error);
              found?.(first);
            }
            throw error;
          }
        }
        progress?.(sent);
      }),
      {
        seed,
        numRuns: Math.ceil((2 * requests) / LONGEST_SEQUENCE),
        ...(path !== undefined && { path }),
      },
    );
    if (!outcome.failed) {
      const finding = await leftBusy(app.url);
      return { sent, statuses: session.statuses, finding: finding && `${finding}\nseed ${seed}` };
    }
    const cause = outcome.errorInstance;
    const shortest = cause instanceof Error ? cause.message : String(cause);
    const finding = `${first}\nafter ${outcome.numShrinks} shrinks: ${shortest}\nseed ${outcome.seed}, path ${outcome.counterexamplePath}`;
    return { sent, statuses: session.statuses, finding };
  } finally {
    session.close();
    await app.close(0);
  }
}

/** Milliseconds: the limit for cancelled runs to end. */
const LONGEST_END = 20_000;

/** Cancels all runs. Returns the threads that are still busy after a while, if any. */
async function leftBusy(url: string): Promise<string | undefined> {
  const signal = AbortSignal.timeout(2 * LONGEST_END);
  const post = (path: string, body: object) =>
    fetch(url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal,
    });
  const began = performance.now();
  for (;;) {
    const cancelled = await post("/runs/cancel", { status: "all" });
    if (cancelled.status !== 204 && cancelled.status !== 404)
      return `cancelling all runs was answered ${cancelled.status}: ${await cancelled.text()}`;
    const busy = (await (
      await post("/threads/search", { status: "busy", select: ["thread_id"] })
    ).json()) as readonly { readonly thread_id: string }[];
    if (busy.length === 0) return undefined;
    if (performance.now() - began > LONGEST_END)
      return `these are still busy after their runs were cancelled: ${busy.map(({ thread_id }) => thread_id).join(", ")}`;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
