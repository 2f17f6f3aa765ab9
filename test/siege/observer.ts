/**
 * The other tenant, in a process of its own, so that load in the hostile one's process does not distort its
 * measurements. It requests `/ok`, each time on a new connection, and the state of a thread, runs a graph on another
 * thread, and reports its longest waits. It also samples the server's memory.
 */
import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

export interface Watched {
  readonly url: string;
  readonly pid: number;
  readonly headers: { readonly [name: string]: string };
  /** The path of a thread's state. */
  readonly state: string;
  /** The path at which a run of another thread is waited for, and its body. */
  readonly run: string;
  readonly body: string;
}

export interface Observed {
  /** The longest time of an answer to `/ok` in milliseconds, and the number of requests. */
  readonly ok: number;
  readonly asked: number;
  /** The same for the state. */
  readonly state: number;
  /** The same for the run. */
  readonly run: number;
  /**
   * The most CPU time, in milliseconds, that the server's main thread used while one of the requests waited. Unlike the
   * time of the answer, it does not grow with the load of the machine.
   */
  readonly busy: number;
  /** Bytes of {@link ownMemory}: at the start and at most. */
  readonly rest: number;
  readonly most: number;
  /** Requests that were not answered with 200, by result. */
  readonly failures: { readonly [seen: string]: number };
}

/** Milliseconds between two requests. */
const PAUSE = 20;
/** Milliseconds: the limit for an answer. */
const LONGEST = 60_000;

const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const runAgent = new Agent({ keepAlive: true, maxSockets: 1 });
const failures: Record<string, number> = {};
let [ok, state, run, asked, busy, rest, most] = [0, 0, 0, 0, 0, 0, 0];
let isOver = false;

/**
 * The bytes in memory that belong to the process alone. Pages of mapped files do not count: LevelDB maps its tables, and the system drops
 * their pages when it needs the memory.
 */
function ownMemory(pid: number): number {
  try {
    return 1024 * Number(/^RssAnon:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/** Milliseconds of a tick of `/proc`, which Linux fixes for all programs. */
const TICK = 10;

/** The CPU time of the main thread of a process so far, in milliseconds; 0 if the process has ended. */
function cpuOf(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/task/${pid}/stat`, "latin1")
      .replace(/^.*\) /, "")
      .split(" ");
    return TICK * (Number(fields[11]) + Number(fields[12]));
  } catch {
    return 0;
  }
}

async function ask(url: string, options: object, body?: string): Promise<void> {
  const seen = await new Promise<number | string>((resolve) => {
    const asking = request(url, { timeout: LONGEST, ...options }, (response) => {
      response.resume();
      response.once("end", () => resolve(response.statusCode ?? 0));
      response.once("error", (cause) => resolve(cause.message));
    });
    asking.once("timeout", () => asking.destroy(new Error("timeout")));
    asking.once("error", (cause) => resolve(cause.message));
    asking.end(body);
  });
  if (seen !== 200) failures[seen] = (failures[seen] ?? 0) + 1;
}

async function repeat(pid: number, work: () => Promise<void>, tell: (ms: number) => void): Promise<void> {
  while (!isOver) {
    const began = performance.now();
    const used = cpuOf(pid);
    await work();
    tell(performance.now() - began);
    busy = Math.max(busy, cpuOf(pid) - used);
    await sleep(PAUSE);
  }
}

async function observe({ url, pid, headers, ...watched }: Watched): Promise<void> {
  rest = ownMemory(pid);
  const sampling = setInterval(() => (most = Math.max(most, ownMemory(pid))), PAUSE);
  const post = {
    agent: runAgent,
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
  };
  // The first requests warm up the server.
  for (let i = 0; i < 5; i++) {
    await ask(`${url}/ok`, { agent: false });
    await ask(url + watched.state, { agent, headers });
    await ask(url + watched.run, post, watched.body);
  }
  process.send?.("ready");
  await Promise.all([
    repeat(
      pid,
      () => ask(`${url}/ok`, { agent: false }),
      (ms) => {
        asked++;
        ok = Math.max(ok, ms);
      },
    ),
    repeat(
      pid,
      () => ask(url + watched.state, { agent, headers }),
      (ms) => (state = Math.max(state, ms)),
    ),
    repeat(
      pid,
      () => ask(url + watched.run, post, watched.body),
      (ms) => (run = Math.max(run, ms)),
    ),
  ]);
  clearInterval(sampling);
  process.send?.({ ok, state, run, asked, busy, rest, most, failures } satisfies Observed, () =>
    process.exit(0),
  );
}

process.on("message", (message: Watched | "stop") => {
  if (message === "stop") isOver = true;
  else void observe(message);
});
process.on("disconnect", () => process.exit(0));
