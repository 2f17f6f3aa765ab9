/** What the process has taken so far, and takes now. */
export interface ProcessFigures {
  /** Seconds of the processor, in user code and in the system, of all threads. */
  readonly cpu: { readonly user: number; readonly system: number };
  /** Bytes. */
  readonly memory: {
    readonly resident: number;
    readonly heapUsed: number;
    readonly heapTotal: number;
    readonly external: number;
  };
  /** Seconds that the event loop of the server's thread was at work, and had nothing to do. */
  readonly loop: { readonly active: number; readonly idle: number };
  /** Epoch seconds. */
  readonly started: number;
}

export type ReadProcess = () => ProcessFigures;
