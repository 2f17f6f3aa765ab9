import { cpSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { App } from "../../src/app.ts";
import { accept, check, repair } from "../../src/cli/maintenance.ts";
import type { SeededRandom } from "../chaos/random.ts";
import { ask, type Image, serve } from "./load.ts";

export const KINDS = ["flip", "cut", "zero", "swap"] as const;
export const PLACES = ["log", "table", "MANIFEST", "CURRENT"] as const;

const PAGE = 4096;
/** The number of checkpoints of a run: input, start, and one for each of its two nodes. */
const CHECKPOINTS = 4;

export interface Trial {
  readonly kind: (typeof KINDS)[number];
  readonly place: (typeof PLACES)[number];
  /** A description of the damage. */
  readonly done: string;
  /** Acknowledged data that is missing although nothing reported a loss. */
  readonly silent: readonly string[];
  /** Answers with another state than the last acknowledged one. */
  readonly wrong: readonly string[];
  /** True if the damage was reported: by the log, `/ready`, a refused start or `check`. */
  readonly isTold: boolean;
  /** True if the start and `check` reported the same. */
  readonly isAgreed: boolean;
  /** True if nothing could be served, even after a repair. */
  readonly isRefused: boolean;
  /** The number of refused threads, and of those among them that had lost nothing visible to clients. */
  readonly refused: number;
  readonly refusedWhole: number;
}

/** Damages a copy of the image, repairs it if the server requires that, and reads all acknowledged data. */
export async function tryDamage(
  image: Image,
  directory: string,
  dice: SeededRandom,
  kind: Trial["kind"],
  place: Trial["place"],
): Promise<Trial> {
  const data = join(directory, "data");
  cpSync(image.data, data, { recursive: true });
  const done = damage(join(data, "level"), join(image.older, "level"), dice, kind, place);
  const errors: string[] = [];
  let app: App | undefined;
  for (let tries = 0; tries < 2 && app === undefined; tries++) {
    try {
      app = await serve(data, errors);
    } catch (error) {
      errors.push(String(error));
      if (!String(error).includes('"heddle repair"')) break;
      await repair(data);
    }
  }
  const result = { silent: [] as string[], wrong: [] as string[], refused: [] as string[] };
  let isReadyTold = false;
  if (app !== undefined) {
    const ready = (await ask(app, "GET", "/ready")).body as { damaged?: unknown };
    isReadyTold = ready.damaged !== undefined;
    await judge(app, image, result);
    await app.close();
  }
  const found = app === undefined ? 1 : await check(data, () => {});
  const isTold = errors.length > 0 || isReadyTold || found > 0;
  const refusedWhole = app === undefined ? 0 : await countWhole(data, image, result.refused);
  return {
    kind,
    place,
    done,
    silent: isTold ? [] : result.silent,
    wrong: result.wrong,
    isTold,
    // A completely repaired database is intact again.
    isAgreed: isReadyTold === found > 0 || (found > 0 && errors.length > 0),
    isRefused: app === undefined,
    refused: result.refused.length,
    refusedWhole,
  };
}

async function judge(
  app: App,
  { facts }: Image,
  { silent, wrong, refused }: { silent: string[]; wrong: string[]; refused: string[] },
): Promise<void> {
  const searched = (await ask(app, "POST", "/threads/search", { limit: 1000 })).body;
  const listed = new Map(
    Array.isArray(searched)
      ? searched.map((thread: { thread_id: string; values: unknown }) => [thread.thread_id, thread.values])
      : [],
  );
  for (const [id, { values, runs }] of facts.threads) {
    const state = await ask(app, "GET", `/threads/${id}/state`);
    const list = await ask(app, "GET", `/threads/${id}/runs?limit=1000`);
    const history = await ask(app, "POST", `/threads/${id}/history`, { limit: 1000 });
    if (state.status >= 500) {
      refused.push(id);
      for (const { status } of [list, history])
        if (status < 500) wrong.push(`${id}: its state is refused, its lists answer ${status}`);
      if (listed.has(id)) wrong.push(`${id}: its state is refused, and it is listed`);
      continue;
    }
    if (state.status === 404) silent.push(`thread ${id} is missing`);
    else if (!isSame((state.body as { values: unknown }).values, values)) wrong.push(`${id}: an older state`);
    else if (list.status >= 500 || history.status >= 500) refused.push(id);
    else {
      if ((list.body as unknown[]).length !== runs)
        wrong.push(`${id}: ${(list.body as unknown[]).length} runs in place of ${runs}`);
      if ((history.body as unknown[]).length !== runs * CHECKPOINTS)
        wrong.push(`${id}: ${(history.body as unknown[]).length} checkpoints of ${runs} runs`);
    }
    if (!Array.isArray(searched)) continue;
    if (!listed.has(id)) silent.push(`thread ${id} is not listed`);
    else if (!isSame(listed.get(id), values)) wrong.push(`${id}: an older state in the list`);
  }
  for (const [id, name] of facts.assistants) {
    const { status, body } = await ask(app, "GET", `/assistants/${id}`);
    if (status === 404) silent.push(`assistant ${id} is missing`);
    else if (status < 300 && (body as { name: string }).name !== name) wrong.push(`assistant ${id}`);
  }
  for (const [key, value] of facts.items) {
    const { status, body } = await ask(app, "GET", `/store/items?namespace=a&key=${key}`);
    if (status === 404 || body === null) silent.push(`item ${key} is missing`);
    else if (status < 300 && !isDeepStrictEqual((body as { value: unknown }).value, value))
      wrong.push(`item ${key}`);
  }
}

/** Compares values. A thread without a run has no values, shown as null or as an object without members. */
function isSame(a: unknown, b: unknown): boolean {
  return isDeepStrictEqual(a ?? {}, b ?? {});
}

/** Counts the refused threads that are complete once the loss is accepted. */
async function countWhole(data: string, { facts }: Image, refused: readonly string[]): Promise<number> {
  if (refused.length === 0) return 0;
  await accept(data, () => {});
  const app = await serve(data, []);
  let whole = 0;
  for (const id of refused) {
    const { status, body } = await ask(app, "GET", `/threads/${id}/state`);
    const runs = await ask(app, "GET", `/threads/${id}/runs?limit=1000`);
    const fact = facts.threads.get(id);
    const hasRuns = Array.isArray(runs.body) && runs.body.length === fact?.runs;
    if (status === 200 && hasRuns && isSame((body as { values: unknown }).values, fact?.values)) whole++;
  }
  await app.close();
  return whole;
}

function damage(
  database: string,
  older: string,
  dice: SeededRandom,
  kind: Trial["kind"],
  place: Trial["place"],
): string {
  const pattern = { log: /^\d+\.log$/, table: /\.ldb$/, MANIFEST: /^MANIFEST-/, CURRENT: /^CURRENT$/ }[place];
  const of = (directory: string): readonly string[] =>
    readdirSync(directory).filter((name) => pattern.test(name) && statSync(join(directory, name)).size > 0);
  const name = dice.pick(of(database));
  const path = join(database, name);
  const { size } = statSync(path);
  const at = dice.between(0, size - 1);
  const bytes = readFileSync(path);
  switch (kind) {
    case "flip":
      bytes[at] = (bytes[at] as number) ^ (1 << dice.between(0, 7));
      writeFileSync(path, bytes);
      return `${name}: a bit of byte ${at} of ${size}`;
    case "cut":
      truncateSync(path, at);
      return `${name}: cut at ${at} of ${size}`;
    case "zero": {
      const from = at - (at % PAGE);
      bytes.fill(0, from, Math.min(size, from + PAGE));
      writeFileSync(path, bytes);
      return `${name}: a page at ${from} of ${size}`;
    }
    case "swap": {
      const from = dice.pick(of(older));
      writeFileSync(path, readFileSync(join(older, from)));
      return `${name}: with an older ${from}`;
    }
  }
}
