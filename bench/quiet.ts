import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** The share of the hardware that other guests of the host used during a measurement. */
export interface Noise {
  /** The share of the time of all cores that other guests of the host got instead of this one: 0 to 1. */
  readonly stolen: number;
  /** Nanoseconds of a memory access that misses every cache. */
  readonly memory: number;
}

/** Measures whether the machine is quiet. */
export interface NoiseMeter {
  /** Waits until the machine is quiet, or the patience is used up. */
  wait(): Promise<void>;
  /** The result of `task`, and the noise while it ran. */
  during<T>(task: () => Promise<T>): Promise<{ readonly result: T; readonly noise: Noise }>;
  isQuiet(noise: Noise): boolean;
  /** Takes this many milliseconds from the patience. Returns false when too little is left. */
  spend(ms: number): boolean;
}

/**
 * Measures at most `tries` times, and returns the first result that was measured while the machine was quiet, or else
 * the last one. The choice depends on the machine alone, never on the result.
 */
export async function measureWhileQuiet<T>(
  ear: NoiseMeter,
  tries: number,
  task: () => Promise<T>,
): Promise<{ readonly result: T; readonly noise: Noise }> {
  for (let left = tries - 1; ; left--) {
    await ear.wait();
    const began = performance.now();
    const made = await ear.during(task);
    if (left <= 0 || ear.isQuiet(made.noise) || !ear.spend(performance.now() - began)) return made;
  }
}

/** The length of the cycle that is walked: 64 MiB, more than a core's share of any cache. */
const CYCLE_LENGTH = 2 ** 24;
/** Milliseconds of one noise sample. */
const SAMPLE_MS = 100;
/** The number of samples before the first row, which find out how fast the machine can be. */
const INITIAL_SAMPLES = 50;
/** The limits for a quiet machine: the access time relative to the fastest one seen, and the stolen share. */
const MAX_SLOWDOWN = 1.2;
const MAX_STOLEN_SHARE = 0.01;

/**
 * Measures whether the machine is quiet, by figures that do not depend on what the bench measures. Guests of one host
 * share its caches, its memory and, with hyper-threading, its cores: while neighbours work, the same run takes up to
 * twice the CPU.
 */
export class HostNoiseMeter implements NoiseMeter {
  /**
   * Each number is the index of the next one: a single cycle through all of them, so that no access can begin before
   * the last one has ended.
   */
  readonly #cycle: Int32Array;
  #at = 0;
  #fastest = Number.POSITIVE_INFINITY;
  /** Milliseconds that may still be spent on waiting and on repeated measurements. */
  #patience: number;

  constructor(patience: number, cycleLength = CYCLE_LENGTH) {
    this.#patience = patience;
    const cycle = new Int32Array(cycleLength);
    this.#cycle = cycle;
    for (let i = 0; i < cycleLength; i++) cycle[i] = i;
    for (let i = cycleLength - 1; i > 0; i--) {
      const j = Math.floor(Math.random() * i);
      const swapped = cycle[i] as number;
      cycle[i] = cycle[j] as number;
      cycle[j] = swapped;
    }
    for (let i = 0; i < (patience > 0 ? INITIAL_SAMPLES : 1); i++) this.#sample();
  }

  async wait(): Promise<void> {
    const began = performance.now();
    while (this.#patience > performance.now() - began && !this.isQuiet(this.#measure())) await sleep(1_000);
    this.#patience -= performance.now() - began;
  }

  async during<T>(task: () => Promise<T>): Promise<{ readonly result: T; readonly noise: Noise }> {
    const before = ticks();
    const memory = this.#sample();
    const result = await task();
    return { result, noise: { stolen: share(before, ticks()), memory: (memory + this.#sample()) / 2 } };
  }

  isQuiet({ stolen, memory }: Noise): boolean {
    return stolen <= MAX_STOLEN_SHARE && memory <= MAX_SLOWDOWN * this.#fastest;
  }

  spend(ms: number): boolean {
    if (this.#patience < ms) return false;
    this.#patience -= ms;
    return true;
  }

  /** Stolen time only shows while this process uses the CPU. */
  #measure(): Noise {
    const before = ticks();
    const memory = Math.max(this.#sample(), this.#sample(), this.#sample());
    return { stolen: share(before, ticks()), memory };
  }

  #sample(): number {
    const cycle = this.#cycle;
    const began = performance.now();
    let at = this.#at;
    let steps = 0;
    let took = 0;
    for (; took < SAMPLE_MS; took = performance.now() - began) {
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

/** The time of all cores since the boot, as the kernel counts it (proc(5), `/proc/stat`). */
function ticks(): Ticks {
  const [line = ""] = readFileSync("/proc/stat", "latin1").split("\n", 1);
  // user, nice, system, idle, iowait, irq, softirq, steal; the fields after these are included in them.
  const counts = line.trim().split(/ +/).slice(1, 9).map(Number);
  return { all: counts.reduce((sum, count) => sum + count, 0), stolen: counts[7] ?? 0 };
}

const share = (before: Ticks, after: Ticks): number =>
  after.all === before.all ? 0 : (after.stolen - before.stolen) / (after.all - before.all);
