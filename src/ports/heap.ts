/** Bytes of the heap of the server's thread. */
export interface Heap {
  /** The used part, including uncollected garbage, and the memory outside the heap that its objects refer to. */
  readonly used: number;
  /** The limit of the heap: the process ends when it needs more. */
  readonly limit: number;
}

export type ReadHeap = () => Heap;
