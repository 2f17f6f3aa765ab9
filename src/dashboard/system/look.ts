import { signal } from "@preact/signals";
import { countThreads } from "../api/client.ts";
import { THREAD_STATUSES, type ThreadStatus } from "../api/records.ts";
import { failed } from "../app/session.ts";
import { ask, KeyNeeded, read } from "../server.ts";
import { type Figures, figuresOf } from "./figures.ts";

/** Milliseconds between two looks, and how many are kept: five minutes. */
export const EVERY = 2_000;
export const KEPT = 150;

/** What was seen of the server last. */
export interface Look {
  readonly version: string;
  readonly transport: string;
  /** Milliseconds that `/ok` took. */
  readonly latency: number;
  readonly threads: number | undefined;
  readonly statuses: readonly (readonly [status: ThreadStatus, count: number])[];
}

interface Info {
  readonly version: string;
  readonly heddle?: { readonly transport?: { readonly kind?: string } };
}

/** The figures of the last looks, the oldest first. They stay when another page is shown. */
export const looks = signal<readonly Figures[]>([]);

/** What is not told is left out. */
async function maybe<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (cause) {
    if (cause instanceof KeyNeeded) failed(cause);
    return undefined;
  }
}

export async function lookAround(): Promise<Look> {
  const began = performance.now();
  await read("ok");
  const latency = performance.now() - began;
  const [info, text, threads, ...counts] = await Promise.all([
    read<Info>("info"),
    maybe(ask("metrics").then((response) => response.text())),
    maybe(countThreads({})),
    ...THREAD_STATUSES.map((status) => maybe(countThreads({ status }))),
  ]);
  if (text !== undefined) looks.value = [...looks.value, figuresOf(text, performance.now())].slice(-KEPT);
  return {
    version: info.version,
    transport: info.heddle?.transport?.kind ?? "?",
    latency,
    threads,
    statuses: THREAD_STATUSES.flatMap((status, i) => {
      const count = counts[i];
      return count === undefined ? [] : [[status, count] as const];
    }),
  };
}
