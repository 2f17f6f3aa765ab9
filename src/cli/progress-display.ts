import type { Clock } from "../ports/clock.ts";
import type { OnProgress, Progress } from "../ports/progress.ts";
import type { Cancel, Scheduler } from "../ports/scheduler.ts";
import type { OutputStream } from "../platform/terminal.ts";

/** Milliseconds of work before a terminal shows its progress. */
const SHOWN_AFTER_MS = 500;
/** Milliseconds between two updates of the progress. */
const REDRAWN_MS = 100;
/** Milliseconds between two lines where there is no terminal. */
const LINE_MS = 10_000;

/** To the start of the line, and erase all of it. */
const ERASE = "\r\u001b[2K";
/** Columns of a terminal that does not say how many it has, or says 0. */
const COLUMNS = 80;

export interface ProgressDisplayOptions {
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  /** The terminal whose last line shows the progress. Absent: `line` is called instead, every 10 s. */
  readonly terminal?: OutputStream;
  readonly line: (text: string, progress: Progress) => void;
}

/** Shows how far long work has come: in a line of the terminal that is rewritten, or elsewhere in a line every 10 s. */
export class ProgressDisplay {
  readonly #options: ProgressDisplayOptions;
  #progress: Progress | undefined;
  /** When the work in progress began, as the monotonic clock says. */
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

  /** Writes something else to the same terminal: the line of the progress makes room for it, and is drawn again later. */
  beside(write: () => void): void {
    this.#erase();
    write();
  }

  /** The work has ended: nothing is shown any more. */
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
      // A longer one would wrap, and only its last row would be erased.
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

/** Such as `reading the tables: 12 of 480 MB (2 %), 3 s`. `ms`: how long the work has taken so far. */
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
