import type { Random } from "../../src/ports/random.ts";

/** A reproducible source of randomness: xoshiro128**, seeded through splitmix32. */
export class SimulatedRandom implements Random {
  readonly #state = new Uint32Array(4);

  constructor(seed: number) {
    let mixed = seed | 0;
    for (let i = 0; i < 4; i++) {
      mixed = (mixed + 0x9e3779b9) | 0;
      let z = mixed ^ (mixed >>> 16);
      z = Math.imul(z, 0x21f0aaad);
      z ^= z >>> 15;
      z = Math.imul(z, 0x735a2d97);
      this.#state[i] = z ^ (z >>> 15);
    }
  }

  /** Returns an integer from 0 to 2^32 - 1, uniformly distributed. */
  word(): number {
    const s = this.#state;
    const [a, b, c, d] = [s[0] ?? 0, s[1] ?? 0, s[2] ?? 0, s[3] ?? 0];
    const times5 = Math.imul(b, 5);
    const result = Math.imul((times5 << 7) | (times5 >>> 25), 9) >>> 0;
    s[0] = a ^ d ^ b;
    s[1] = b ^ c ^ a;
    s[2] = c ^ a ^ (b << 9);
    const last = d ^ b;
    s[3] = (last << 11) | (last >>> 21);
    return result;
  }

  bytes(count: number): Uint8Array {
    if (!Number.isInteger(count) || count < 0 || count > 64) throw new TypeError(`no ${count} bytes`);
    return Uint8Array.from({ length: count }, () => this.word() >>> 24);
  }

  float(): number {
    return this.word() / 2 ** 32;
  }

  /** Returns an integer from 0 to `count` - 1, uniformly distributed. */
  below(count: number): number {
    return Math.floor(this.float() * count);
  }

  chance(probability: number): boolean {
    return this.float() < probability;
  }

  pick<T>(from: readonly T[]): T {
    if (from.length === 0) throw new RangeError("nothing to pick from");
    return from[this.below(from.length)] as T;
  }

  shuffled<T>(items: readonly T[]): T[] {
    const result = [...items];
    for (let i = result.length - 1; i > 0; i--) {
      const j = this.below(i + 1);
      [result[i], result[j]] = [result[j] as T, result[i] as T];
    }
    return result;
  }

  /** Returns an independent source, so that more draws in one part do not change the choices of another. */
  fork(): SimulatedRandom {
    return new SimulatedRandom(this.word());
  }
}
