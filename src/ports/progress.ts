/** How far a piece of long work has come. */
export interface Progress {
  /** What is being done, such as "reading the tables". */
  readonly work: string;
  /** How much of it is done, in `unit`. Absent where that cannot be told. */
  readonly done?: number;
  /** How much there is to do, in `unit`. Absent where that is not known before. */
  readonly total?: number;
  readonly unit?: "bytes" | "keys" | "threads";
}

/** Is told how far long work has come, as often as the work likes. It MUST NOT throw. */
export type OnProgress = (progress: Progress) => void;
