/** Resources that the process has used so far, and uses now. */
export interface ProcessMetrics {
  /** Seconds of processor time of all threads, in user code and in the system. */
  readonly cpu: { readonly user: number; readonly system: number };
  /** The memory of the process, in bytes. */
  readonly memory: {
    readonly resident: number;
    readonly heapUsed: number;
    readonly heapTotal: number;
    readonly external: number;
  };
  /** Seconds that the event loop of the server's thread was active, and idle. */
  readonly loop: { readonly active: number; readonly idle: number };
  /** Epoch seconds at which the process started. */
  readonly started: number;
}

export type ReadProcessMetrics = () => ProcessMetrics;
