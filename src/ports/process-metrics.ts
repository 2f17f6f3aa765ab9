/** The resources that the process uses now, or has used since its start. */
export interface ProcessMetrics {
  readonly pid: number;
  /** Seconds of processor time of all threads, in user code and in the system. */
  readonly cpu: { readonly user: number; readonly system: number };
  /** The memory of the process, in bytes. */
  readonly memory: {
    readonly resident: number;
    readonly heapUsed: number;
    readonly heapTotal: number;
    readonly external: number;
  };
  /** Seconds for which the event loop of the thread that serves requests was active or idle since the start. */
  readonly loop: { readonly active: number; readonly idle: number };
  /** Epoch seconds at which the process started. */
  readonly started: number;
}

export type ReadProcessMetrics = () => ProcessMetrics;
