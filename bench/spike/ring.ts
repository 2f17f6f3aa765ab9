/**
 * Indexes of words in the control block. HEAD and TAIL hold the number of bytes ever written and ever read, modulo
 * 2^32; their difference is the number of bytes in the ring.
 */
const HEAD = 0;
const TAIL = 1;
/** 1 while the reader has read everything and waits to be woken, else 0. */
const ASLEEP = 2;
const CONTROL = 64;

export interface RingMemory {
  readonly memory: SharedArrayBuffer;
}

/**
 * Allocates the memory of a ring, for one direction. `size` is the number of data bytes and MUST be a power of two.
 */
export function ringMemory(size: number): RingMemory {
  return { memory: new SharedArrayBuffer(CONTROL + size) };
}

/**
 * A queue of byte strings in shared memory, from one writing thread to one reading thread. Unlike `postMessage`, it
 * clones and allocates nothing to pass a record.
 */
export class Ring {
  readonly control: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #size: number;

  constructor({ memory }: RingMemory) {
    this.control = new Int32Array(memory, 0, CONTROL / 4);
    this.#bytes = new Uint8Array(memory, CONTROL);
    this.#size = this.#bytes.length;
  }

  /** Adds a record. If the ring is full, the thread is blocked until there is room; only a worker may block. */
  push(record: Uint8Array): void {
    const need = record.length + 4;
    let tail = Atomics.load(this.control, TAIL);
    const head = this.control[HEAD] as number;
    while (this.#size - ((head - tail) >>> 0) < need) {
      Atomics.wait(this.control, TAIL, tail, 100);
      tail = Atomics.load(this.control, TAIL);
    }
    this.#put(head, lengthOf(record.length));
    this.#put(head + 4, record);
    Atomics.store(this.control, HEAD, (head + need) | 0);
  }

  /**
   * Returns whether the writer must wake the reader after its pushes. Returns true once each time that the reader
   * waits.
   */
  shouldWake(): boolean {
    return Atomics.compareExchange(this.control, ASLEEP, 1, 0) === 1;
  }

  /** Passes each record, as a copy, to `take`. Returns the number of records. */
  drain(take: (record: Buffer) => void): number {
    let taken = 0;
    for (;;) {
      const head = Atomics.load(this.control, HEAD);
      let tail = this.control[TAIL] as number;
      while (tail !== head) {
        const size = this.#get(tail, 4).readUInt32LE(0);
        const record = this.#get(tail + 4, size);
        tail = (tail + 4 + size) | 0;
        Atomics.store(this.control, TAIL, tail);
        Atomics.notify(this.control, TAIL);
        take(record);
        taken++;
      }
      Atomics.store(this.control, ASLEEP, 1);
      // A record that the writer added just before ASLEEP was set does not wake the reader, so the reader checks once
      // more.
      if (Atomics.load(this.control, HEAD) === tail) return taken;
      Atomics.store(this.control, ASLEEP, 0);
    }
  }

  #put(at: number, data: Uint8Array): void {
    const from = (at >>> 0) % this.#size;
    const first = Math.min(data.length, this.#size - from);
    this.#bytes.set(first === data.length ? data : data.subarray(0, first), from);
    if (first < data.length) this.#bytes.set(data.subarray(first), 0);
  }

  #get(at: number, length: number): Buffer {
    const from = (at >>> 0) % this.#size;
    const out = Buffer.allocUnsafe(length);
    const first = Math.min(length, this.#size - from);
    out.set(this.#bytes.subarray(from, from + first));
    if (first < length) out.set(this.#bytes.subarray(0, length - first), first);
    return out;
  }
}

const four = Buffer.alloc(4);

function lengthOf(length: number): Uint8Array {
  four.writeUInt32LE(length);
  return four;
}
