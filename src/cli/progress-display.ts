import type { Clock } from "../ports/clock.ts";
import type { OnProgress, Progress } from "../ports/work-progress.ts";
import type { Cancel, Scheduler } from "../ports/scheduler.ts";
import type { OutputStream } from "../platform/terminal.ts";

/** Milliseconds after the start of a task before a terminal shows its progress. */
const SHOWN_AFTER_MS = 500;
/** Milliseconds between two updates of the progress line on a terminal. */
const REDRAW_INTERVAL_MS = 100;
/** Milliseconds between two lines of progress if there is no terminal. */
const LINE_INTERVAL_MS = 10_000;

/** The terminal sequence that moves to the start of the line and erases the line. */
const ERASE = "\r\u001b[2K";
/** The number of columns that is assumed for a terminal that does not report its width, or reports 0. */
const DEFAULT_COLUMNS = 80;

export interface ProgressDisplayOptions {
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  /** The terminal whose last line shows the progress. Absent: `line` is called instead, every {@link LINE_INTERVAL_MS}. */
  readonly terminal?: OutputStream;
  readonly line: (text: string, progress: Progress) => void;
}

/**
 * Shows the progress of long tasks: on a terminal in one line that is rewritten, elsewhere in a new line every {@link LINE_INTERVAL_MS}.
 */
export class ProgressDisplay {
  readonly #options: ProgressDisplayOptions;
  #progress: Progress | undefined;
  /** The start of the current task, in milliseconds of the monotonic clock. */
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
    this.#cancel ??= this.#after(terminal === undefined ? LINE_INTERVAL_MS : SHOWN_AFTER_MS);
  };

  /**
   * Erases the progress line, then calls `write`, which may write other text to the same terminal. The line is drawn again at its next
   * update.
   */
  beside(write: () => void): void {
    this.#erase();
    write();
  }

  /** Ends the display, and erases the progress line. */
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
      // A line wider than the terminal would wrap, and only its last row could be erased.
      const { columns = 0 } = terminal;
      terminal.write(ERASE + text.slice(0, (columns === 0 ? DEFAULT_COLUMNS : columns) - 1));
      this.#isDrawn = true;
    }
    this.#cancel = this.#after(terminal === undefined ? LINE_INTERVAL_MS : REDRAW_INTERVAL_MS);
  };

  #erase(): void {
    if (!this.#isDrawn) return;
    this.#isDrawn = false;
    this.#options.terminal?.write(ERASE);
  }
}

/** Formats progress as text, such as `reading the tables: 12 of 480 MB (2 %), 3 s`. `ms`: how long the task has run. */
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
