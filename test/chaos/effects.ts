import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";

/** The begin of a node body: one line of a file that the chaos graph writes independently of Heddle's storage. */
export interface Effect {
  readonly thread: string;
  readonly run: string;
  readonly node: string;
  readonly task: string;
  readonly attempt: number;
  /** The pid of the server process: one for each life. */
  readonly pid: number;
}

/** Reads the effects file as it grows. A line that a kill tore is left out. */
export class Effects {
  readonly #file: string;
  readonly all: Effect[] = [];
  #offset = 0;
  #rest = "";

  constructor(file: string) {
    this.#file = file;
  }

  /** Reads the lines added since the last call. Returns the total number of effects. */
  read(): number {
    if (!existsSync(this.#file)) return 0;
    const size = statSync(this.#file).size;
    const buffer = Buffer.alloc(size - this.#offset);
    const fd = openSync(this.#file, "r");
    try {
      readSync(fd, buffer, 0, buffer.length, this.#offset);
    } finally {
      closeSync(fd);
    }
    this.#offset = size;
    const lines = (this.#rest + buffer.toString("utf8")).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      try {
        this.all.push(JSON.parse(line) as Effect);
      } catch {
        // A kill tore this line; the next life has appended to it.
      }
    }
    return this.all.length;
  }
}
