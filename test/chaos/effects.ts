import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";

/** A node body began: one line of the file that the chaos graph writes beside everything that Heddle stores. */
export interface Effect {
  readonly thread: string;
  readonly run: string;
  readonly node: string;
  readonly task: string;
  readonly attempt: number;
  /** Of the server process: one for each life. */
  readonly pid: number;
}

/** Reads the effects file as it grows; a line that a kill tore is left out. */
export class Effects {
  readonly #file: string;
  readonly all: Effect[] = [];
  #offset = 0;
  #rest = "";

  constructor(file: string) {
    this.#file = file;
  }

  /** Takes in what was added since the last call; answers how many effects there are now. */
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
        // Torn by a kill, then continued by the next life.
      }
    }
    return this.all.length;
  }
}
