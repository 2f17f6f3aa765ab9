import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { type App, createApp } from "../../src/app.ts";
import { graph, list } from "../../src/index.ts";
import { createLogger } from "../../src/platform/log.ts";
import { systemClock } from "../../src/platform/clock.ts";
import type { SeededRandom } from "../chaos/random.ts";

/** The acknowledged data. */
export interface Facts {
  /** The last acknowledged values of each thread, and the number of its runs. */
  readonly threads: Map<string, { values: unknown; runs: number }>;
  readonly assistants: Map<string, string>;
  readonly items: Map<string, unknown>;
}

/** A data directory after a stop, and a copy of it from an earlier moment. */
export interface Image {
  readonly data: string;
  readonly older: string;
  readonly isKilled: boolean;
  readonly facts: Facts;
}

const work = graph({
  state: { size: z.number().default(0), log: list<string>(), text: z.string().default("") },
  nodes: {
    first: (state, ctx) => {
      ctx.emit({ at: "first" });
      return { log: [`${ctx.runId}:first`], text: `${ctx.runId} `.repeat(state.size) };
    },
    second: (_, ctx) => ({ log: [`${ctx.runId}:second`] }),
  },
  edges: { start: "first", first: "second" },
});

/** Serves `data`; log lines of level `error` go into `errors`. */
export function serve(data: string, errors: string[]): Promise<App> {
  const logger = createLogger({ clock: systemClock, level: "error", write: (line) => errors.push(line) });
  return createApp({ data, graphs: { work }, logger });
}

export async function ask(
  app: App,
  method: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; body: unknown }> {
  const answer = await fetch(app.url + path, {
    method,
    ...(body !== undefined && {
      body: JSON.stringify(body),
      headers: { "content-type": "application/json" },
    }),
  });
  const text = await answer.text();
  return { status: answer.status, body: text === "" ? undefined : (JSON.parse(text) as unknown) };
}

function below(dice: SeededRandom, count: number): number {
  return dice.between(0, count - 1);
}

async function must(app: App, method: string, path: string, body?: unknown): Promise<unknown> {
  const answer = await ask(app, method, path, body);
  if (answer.status >= 300)
    throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}

/** Runs several lives of a server under load. The last one stops gracefully, or leaves its files as `kill -9` would. */
export async function makeImage(directory: string, dice: SeededRandom, isKilled: boolean): Promise<Image> {
  const facts: Facts = { threads: new Map(), assistants: new Map(), items: new Map() };
  const [live, data, older] = ["live", "data", "older"].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  const lives = 3 + below(dice, 2);
  for (let life = 1; life <= lives; life++) {
    const app = await serve(live, []);
    await Promise.all([1, 2, 3, 4].map(() => client(app, facts, dice, 8 + below(dice, 10))));
    // Copied in the middle of the last life but one, so that its files have the same names and less content.
    if (life === lives - 1) cpSync(live, older, { recursive: true });
    if (life === lives - 1) await client(app, facts, dice, 10);
    // Longer than the ledger of batches buffers its lines: otherwise the last acknowledged writes could be cut off
    // undetected.
    if (life === lives && isKilled) await sleep(100);
    if (life === lives && isKilled) {
      cpSync(live, data, { recursive: true });
      // It names this process, which lives on: a copy that happens to get the freed inode of the original would count as locked.
      rmSync(join(data, "heddle.lock"));
    }
    await app.close();
  }
  if (!isKilled) cpSync(live, data, { recursive: true });
  return { data, older, isKilled, facts };
}

async function client(app: App, facts: Facts, dice: SeededRandom, operations: number): Promise<void> {
  const own: string[] = [];
  for (let n = 0; n < operations; n++) {
    const kind = below(dice, 10);
    if (own.length === 0 || kind < 3) {
      const { thread_id } = (await must(app, "POST", "/threads", {})) as { thread_id: string };
      facts.threads.set(thread_id, { values: null, runs: 0 });
      own.push(thread_id);
    } else if (kind < 8) {
      const id = own[below(dice, own.length)] as string;
      const input = { size: below(dice, 80) };
      const values = await must(app, "POST", `/threads/${id}/runs/wait`, { assistant_id: "work", input });
      facts.threads.set(id, { values, runs: (facts.threads.get(id)?.runs ?? 0) + 1 });
    } else if (kind === 8) {
      const name = `assistant ${below(dice, 1e9)}`;
      const made = (await must(app, "POST", "/assistants", { graph_id: "work", name })) as {
        assistant_id: string;
      };
      facts.assistants.set(made.assistant_id, name);
    } else {
      const key = `k${below(dice, 1e9)}`;
      const value = { n: below(dice, 1e9) };
      await must(app, "PUT", "/store/items", { namespace: ["a"], key, value });
      facts.items.set(key, value);
    }
  }
}
