/** How far a piece of long work has come. */
export interface Progress {
  /** What is being done, such as "reading the tables". */
  readonly work: string;
  /** How much of it is done, in `unit`. Absent where that is unknown. */
  readonly done?: number;
  /** How much there is to do, in `unit`. Absent where that is not known before. */
  readonly total?: number;
  readonly unit?: "bytes" | "keys" | "threads";
}

/** Called with the progress of long work, at any rate. It MUST NOT throw. */
export type OnProgress = (progress: Progress) => void;
