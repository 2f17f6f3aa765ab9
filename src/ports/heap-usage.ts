/** The memory of the V8 heap of the server's thread, in bytes. */
export interface HeapUsage {
  /** Used bytes, including uncollected garbage and the memory outside the heap that objects refer to, such as the memory of buffers. */
  readonly used: number;
  /** The limit, in bytes: the process crashes when the heap needs more. */
  readonly limit: number;
}

export type ReadHeapUsage = () => HeapUsage;
