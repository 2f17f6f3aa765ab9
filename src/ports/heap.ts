/** Bytes of the heap of the server's thread. */
export interface Heap {
  /** What is in use, with what its objects hold outside of it, and with garbage that is not collected yet. */
  readonly used: number;
  /** The most that it may be: the process ends when it needs more. */
  readonly limit: number;
}

export type ReadHeap = () => Heap;
