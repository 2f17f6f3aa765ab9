/** Bytes of the heap of the server's thread. */
export interface Heap {
  /** The used part, with uncollected garbage, and the memory outside the heap that its objects refer to. */
  readonly used: number;
  /** The most that it may be: the process ends when it needs more. */
  readonly limit: number;
}

export type ReadHeap = () => Heap;
