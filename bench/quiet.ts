import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** What others who share the machine's hardware took while something was measured. */
export interface Noise {
  /** Of the time of all cores, the share that other guests of the host had in our stead: 0 to 1. */
  readonly stolen: number;
  /** Nanoseconds of an access to memory that no cache of ours holds. */
  readonly memory: number;
}

/** What tells whether it is quiet. */
export interface Ear {
  /** Waits for the machine to be quiet, as long as there is patience. */
  wait(): Promise<void>;
  /** What `task` answers, and how it was meanwhile. */
  during<T>(task: () => Promise<T>): Promise<{ readonly told: T; readonly noise: Noise }>;
  isQuiet(noise: Noise): boolean;
  /** May so many milliseconds be spent again? Then they are. */
  spend(ms: number): boolean;
}

/** Of at most so many tries the first that was made in a quiet time, or else the last: by the machine, never by what came out. */
export async function quietly<T>(
  ear: Ear,
  tries: number,
  task: () => Promise<T>,
): Promise<{ readonly told: T; readonly noise: Noise }> {
  for (let left = tries - 1; ; left--) {
    await ear.wait();
    const began = performance.now();
    const made = await ear.during(task);
    if (left <= 0 || ear.isQuiet(made.noise) || !ear.spend(performance.now() - began)) return made;
  }
}

/** Numbers in the cycle that is walked: 64 MiB, more than a core's share of any cache. */
const LENGTH = 2 ** 24;
/** Milliseconds of one look. */
const LOOK = 100;
/** Looks that tell what the machine can do, before the first row. */
const LOOKS = 50;
/** What counts as quiet: so much more than the fastest access seen, and such a share stolen. */
const SLOWER = 1.2;
const STOLEN = 0.01;

/**
 * Whether the machine is quiet, by what has nothing to do with what is measured. Guests of one host share its caches, its memory
 * and, where cores are two of one, its units too: while neighbours work, the same run takes up to twice the CPU.
 */
export class Quiet implements Ear {
  /** Each number is the place of the next: one cycle through all, so that no access can begin before the last one has ended. */
  readonly #cycle = new Int32Array(LENGTH);
  #at = 0;
  #fastest = Number.POSITIVE_INFINITY;
  /** Milliseconds that may still be spent on waiting and on measuring again. */
  #patience: number;

  constructor(patience: number) {
    this.#patience = patience;
    const cycle = this.#cycle;
    for (let i = 0; i < LENGTH; i++) cycle[i] = i;
    for (let i = LENGTH - 1; i > 0; i--) {
      const j = Math.floor(Math.random() * i);
      const swapped = cycle[i] as number;
      cycle[i] = cycle[j] as number;
      cycle[j] = swapped;
    }
    for (let i = 0; i < (patience > 0 ? LOOKS : 1); i++) this.#look();
  }

  async wait(): Promise<void> {
    const began = performance.now();
    while (this.#patience > performance.now() - began && !this.isQuiet(this.#now())) await sleep(1_000);
    this.#patience -= performance.now() - began;
  }

  async during<T>(task: () => Promise<T>): Promise<{ readonly told: T; readonly noise: Noise }> {
    const before = ticks();
    const memory = this.#look();
    const told = await task();
    return { told, noise: { stolen: share(before, ticks()), memory: (memory + this.#look()) / 2 } };
  }

  isQuiet({ stolen, memory }: Noise): boolean {
    return stolen <= STOLEN && memory <= SLOWER * this.#fastest;
  }

  spend(ms: number): boolean {
    if (this.#patience < ms) return false;
    this.#patience -= ms;
    return true;
  }

  /** Time is only stolen from those who use it. */
  #now(): Noise {
    const before = ticks();
    const memory = Math.max(this.#look(), this.#look(), this.#look());
    return { stolen: share(before, ticks()), memory };
  }

  #look(): number {
    const cycle = this.#cycle;
    const began = performance.now();
    let at = this.#at;
    let steps = 0;
    let took = 0;
    for (; took < LOOK; took = performance.now() - began) {
      for (let i = 0; i < 1_000; i++) at = cycle[at] as number;
      steps += 1_000;
    }
    this.#at = at;
    const memory = (took * 1e6) / steps;
    this.#fastest = Math.min(this.#fastest, memory);
    return memory;
  }
}

interface Ticks {
  readonly all: number;
  readonly stolen: number;
}

/** Time of all cores since the machine was started, by the kernel's count (proc(5), `/proc/stat`). */
function ticks(): Ticks {
  const [line = ""] = readFileSync("/proc/stat", "latin1").split("\n", 1);
  // user, nice, system, idle, iowait, irq, softirq, steal; what follows is part of these.
  const counts = line.trim().split(/ +/).slice(1, 9).map(Number);
  return { all: counts.reduce((sum, count) => sum + count, 0), stolen: counts[7] ?? 0 };
}

const share = (before: Ticks, after: Ticks): number =>
  after.all === before.all ? 0 : (after.stolen - before.stolen) / (after.all - before.all);
