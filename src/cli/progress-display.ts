import type { Clock } from "../ports/clock.ts";
import type { OnProgress, Progress } from "../ports/work-progress.ts";
import type { Cancel, Scheduler } from "../ports/scheduler.ts";
import type { OutputStream } from "../platform/terminal.ts";

/** Milliseconds of work before a terminal shows its progress. */
const SHOWN_AFTER_MS = 500;
/** Milliseconds between two updates of the progress. */
const REDRAWN_MS = 100;
/** Milliseconds between two lines if there is no terminal. */
const LINE_MS = 10_000;

/** Terminal sequence: moves to the start of the line and erases all of it. */
const ERASE = "\r\u001b[2K";
/** The number of columns that is assumed for a terminal that does not report its width, or reports 0. */
const COLUMNS = 80;

export interface ProgressDisplayOptions {
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  /** The terminal whose last line shows the progress. Absent: `line` is called instead, every 10 s. */
  readonly terminal?: OutputStream;
  readonly line: (text: string, progress: Progress) => void;
}

/** Shows the progress of long work: on a terminal in one line that is rewritten, elsewhere in a new line every 10 s. */
export class ProgressDisplay {
  readonly #options: ProgressDisplayOptions;
  #progress: Progress | undefined;
  /** The start of the current work, on the monotonic clock. */
  #since = 0;
  #isDrawn = false;
  #cancel: Cancel | undefined;

  constructor(options: ProgressDisplayOptions) {
    this.#options = options;
  }

  readonly onProgress: OnProgress = (progress) => {
    const { clock, terminal } = this.#options;
    if (progress.work !== this.#progress?.work) this.#since = clock.mono();
    this.#progress = progress;
    this.#cancel ??= this.#after(terminal === undefined ? LINE_MS : SHOWN_AFTER_MS);
  };

  /** Writes other text to the same terminal: erases the progress line first; it is drawn again later. */
  beside(write: () => void): void {
    this.#erase();
    write();
  }

  /** Ends the display: erases the progress line. */
  end(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#progress = undefined;
    this.#erase();
  }

  #after(ms: number): Cancel {
    return this.#options.scheduler.after(ms, this.#show);
  }

  readonly #show = (): void => {
    const { clock, terminal, line } = this.#options;
    const progress = this.#progress;
    if (progress === undefined) return;
    const text = textOf(progress, clock.mono() - this.#since);
    if (terminal === undefined) line(text, progress);
    else {
      // A longer line would wrap, and only its last row would be erased.
      const { columns = 0 } = terminal;
      terminal.write(ERASE + text.slice(0, (columns === 0 ? COLUMNS : columns) - 1));
      this.#isDrawn = true;
    }
    this.#cancel = this.#after(terminal === undefined ? LINE_MS : REDRAWN_MS);
  };

  #erase(): void {
    if (!this.#isDrawn) return;
    this.#isDrawn = false;
    this.#options.terminal?.write(ERASE);
  }
}

/** The progress as text, such as `reading the tables: 12 of 480 MB (2 %), 3 s`. `ms`: the duration of the work so far. */
function textOf({ work, done, total, unit = "keys" }: Progress, ms: number): string {
  const seconds = `${Math.floor(ms / 1_000)} s`;
  if (done === undefined) return `${work}, ${seconds}`;
  const amount = (number: number) =>
    unit === "bytes" ? Math.floor(number / 1e6).toLocaleString("en") : number.toLocaleString("en");
  const name = unit === "bytes" ? "MB" : unit;
  const share = total === undefined || total === 0 ? "" : ` (${Math.floor((100 * done) / total)} %)`;
  const all = total === undefined ? "" : ` of ${amount(total)}`;
  return `${work}: ${amount(done)}${all} ${name}${share}, ${seconds}`;
}
