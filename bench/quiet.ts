import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** How much of the host's hardware other virtual machines used during a measurement. */
export interface Noise {
  /**
   * The share of CPU time (0 to 1) that the host gave to other virtual machines although this one wanted to run
   * ("steal").
   */
  readonly stolen: number;
  /** Nanoseconds of a memory access that misses all CPU caches. */
  readonly memory: number;
}

/** Measures whether the machine is quiet: whether other virtual machines on the same host leave it alone. */
export interface NoiseMeter {
  /** Waits until the machine is quiet, or until the time that may be spent on waiting is used up. */
  wait(): Promise<void>;
  /**
   * Runs `task`, and returns its result and the noise. Stolen time is measured while it runs, memory access right
   * before and after.
   */
  during<T>(task: () => Promise<T>): Promise<{ readonly result: T; readonly noise: Noise }>;
  isQuiet(noise: Noise): boolean;
  /**
   * Deducts this many milliseconds from the time that may be spent on repetitions. Returns false, and deducts nothing,
   * if less is left.
   */
  spend(ms: number): boolean;
}

/**
 * Runs `task` until the machine is quiet during a run, at most `tries` times and while there is time for repetitions.
 * Returns the last result. Only the noise decides about a repetition, never the result.
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

/** The number of elements in {@link HostNoiseMeter}'s cycle: 64 MiB, more than a core's share of any cache. */
const CYCLE_LENGTH = 2 ** 24;
/** The duration of one sample of memory access. */
const SAMPLE_MS = 100;
/** The number of samples before the first row. Their fastest is what a quiet machine can reach. */
const INITIAL_SAMPLES = 50;
/**
 * A machine is quiet up to these limits: the time of a memory access relative to the fastest sample so far, and the
 * stolen share of CPU time.
 */
const MAX_SLOWDOWN = 1.2;
const MAX_STOLEN_SHARE = 0.01;

/**
 * Measures whether the machine is quiet by stolen CPU time and by the time of a memory access, because neither depends
 * on what the bench measures. Virtual machines on one host share its caches, its memory and, with hyper-threading, its
 * cores: while neighbours work, the same run takes up to twice the CPU time.
 */
export class HostNoiseMeter implements NoiseMeter {
  /**
   * Each element is the index of the element to read next. All elements form one cycle, so that no read can begin
   * before the previous one has ended.
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

  /** The samples keep a core busy, because time is only stolen from a machine that wants to run. */
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

/** The CPU time of all cores since boot, in the kernel's ticks (proc(5), `/proc/stat`). */
function ticks(): Ticks {
  const [line = ""] = readFileSync("/proc/stat", "latin1").split("\n", 1);
  // user, nice, system, idle, iowait, irq, softirq, steal. The fields after these (guest time) are already included in
  // user and nice.
  const counts = line.trim().split(/ +/).slice(1, 9).map(Number);
  return { all: counts.reduce((sum, count) => sum + count, 0), stolen: counts[7] ?? 0 };
}

const share = (before: Ticks, after: Ticks): number =>
  after.all === before.all ? 0 : (after.stolen - before.stolen) / (after.all - before.all);
