import { setTimeout as sleep } from "node:timers/promises";
import { type App, createApp } from "../../src/app.ts";
import { check } from "../../src/cli/maintenance.ts";
import { createLogger } from "../../src/platform/log.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { SeededRandom } from "../chaos/random.ts";
import { Client } from "./client.ts";
import { graphs } from "./graphs.ts";

export interface HammerOptions {
  readonly data: string;
  readonly seconds: number;
  /** Continues until so many requests were sent, on a slow machine too. */
  readonly requests?: number;
  readonly seed: number;
  readonly transport: "uws" | "node";
  readonly progress?: (line: string) => void;
}

export interface Outcome {
  /** The number of answers by request and status. */
  readonly answers: ReadonlyMap<string, number>;
  readonly sent: number;
  readonly rounds: number;
  readonly faults: readonly string[];
}

/** The number of concurrent clients. */
const CLIENTS = 10;
/** Milliseconds of traffic before the server must come to rest. */
const ROUND = 1_500;
/** Milliseconds: the limit for a server without traffic to come to rest. */
const REST = 20_000;
/** The largest number of faults reported. */
const MOST_FAULTS = 20;

/**
 * Clients that send every request that changes runs and threads, to a few threads concurrently. After each round of
 * traffic the server comes to rest, or is stopped in the middle of it. Then runs, threads and storage must agree.
 */
export async function hammer(options: HammerOptions): Promise<Outcome> {
  const { data, seconds, requests = 0, seed, transport, progress } = options;
  const dice = new SeededRandom(seed);
  const faults: string[] = [];
  const logger = createLogger({
    clock: systemClock,
    level: "warn",
    // Errors of nodes that fail on purpose are expected.
    write: (line) => void (/"a (node|run) failed"/.test(line) || faults.push(`logged: ${line.trim()}`)),
  });
  const unhandled = (cause: unknown): void =>
    void faults.push(`nobody handled: ${cause instanceof Error ? cause.stack : String(cause)}`);
  process.on("unhandledRejection", unhandled);
  const made = await graphs();
  const begin = (): Promise<App> => createApp({ ...made, data, transport, logger });
  const client = new Client(dice, faults);
  const until = performance.now() + seconds * 1_000;
  let rounds = 0;
  let app = await begin();
  client.url = app.url;
  while ((performance.now() < until || client.sent < requests) && faults.length < MOST_FAULTS) {
    rounds++;
    client.isStopping = false;
    const round = client.send(CLIENTS, performance.now() + Math.min(ROUND, seconds * 1_000));
    if (dice.chance(0.4)) {
      await sleep(dice.between(200, ROUND));
      client.isStopping = true;
      await app.close(dice.pick([0, 50, 1_000]));
      await round;
      app = await begin();
      client.url = app.url;
      client.isStopping = false;
    } else await round;
    await rest(app, faults);
    const before = await client.verify();
    await app.close();
    const found: string[] = [];
    if ((await check(data, (line) => void found.push(line))) > 0)
      faults.push(...found.map((line) => `check: ${line}`));
    app = await begin();
    client.url = app.url;
    const after = await client.verify();
    for (const [thread, record] of before) {
      const now = after.get(thread);
      if (now !== record) faults.push(`thread ${thread} is not as before the restart:\n${record}\n${now}`);
    }
    client.forget();
    progress?.(`round ${rounds}: ${client.sent} requests, ${faults.length} faults`);
  }
  await app.close();
  process.off("unhandledRejection", unhandled);
  return { answers: client.answers, sent: client.sent, rounds, faults };
}

/** Without traffic all runs end, or wait for an answer. */
async function rest({ system }: Pick<App, "system">, faults: string[]): Promise<void> {
  const until = performance.now() + REST;
  const isAtRest = (): boolean => {
    return system.counts.busy === 0;
  };
  while (!isAtRest()) {
    if (performance.now() > until) {
      faults.push(`no rest after ${REST} ms: ${JSON.stringify(system.counts)}`);
      return;
    }
    await sleep(20);
  }
  // Delayed runs become due.
  await sleep(300);
  if (!isAtRest()) await rest({ system }, faults);
}
