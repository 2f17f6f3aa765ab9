/** The progress of long work. */
export interface Progress {
  /** The current work, such as "reading the tables". */
  readonly work: string;
  /** How much is done, in `unit`. Absent if unknown. */
  readonly done?: number;
  /** How much there is in total, in `unit`. Absent if it is not known in advance. */
  readonly total?: number;
  readonly unit?: "bytes" | "entries" | "keys" | "threads";
}

/** Called with the progress of long work each time that the progress has changed. MUST NOT throw. */
export type OnProgress = (progress: Progress) => void;
