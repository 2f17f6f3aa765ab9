import { signal } from "@preact/signals";
import { countThreads } from "../api/client.ts";
import { THREAD_STATUSES, type ThreadStatus } from "../api/records.ts";
import { failed } from "../app/session.ts";
import { ask, KeyNeeded, read } from "../server.ts";
import { type Figures, figuresOf } from "./figures.ts";

/** Milliseconds between two samples. */
export const EVERY = 2_000;
/** The number of samples kept: five minutes. */
export const KEPT = 150;

/** The latest sample of the server's state. */
export interface Look {
  readonly version: string;
  readonly transport: string;
  /** Milliseconds: the duration of the request to `/ok`. */
  readonly latency: number;
  readonly threads: number | undefined;
  readonly statuses: readonly (readonly [status: ThreadStatus, count: number])[];
}

interface Info {
  readonly version: string;
  readonly heddle?: { readonly transport?: { readonly kind?: string } };
}

/** The metrics of the last samples, oldest first. They stay when another page is shown. */
export const looks = signal<readonly Figures[]>([]);

/** Resolves with undefined if the request fails. A missing key opens the key dialog. */
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
