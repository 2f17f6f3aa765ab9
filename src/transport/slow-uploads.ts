import type { Cancel, Scheduler } from "../ports/scheduler.ts";
import type { RequestBody } from "./request-body.ts";
import { MIN_UPLOAD_BYTES_PER_SECOND } from "./transport-limits.ts";

interface Upload {
  readonly body: RequestBody;
  cut(): void;
  /** The number of bytes received at the last check; -1 before the first check. */
  seen: number;
}

const CHECK_INTERVAL_MS = 5_000;

/** Closes connections whose request bodies arrive too slowly. The timer runs only while bodies are arriving. */
export class SlowUploadGuard {
  readonly #scheduler: Scheduler;
  readonly #under = new Set<Upload>();
  #cancel: Cancel | undefined;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  add(body: RequestBody, cut: () => void): void {
    this.#under.add({ body, cut, seen: -1 });
    this.#cancel ??= this.#scheduler.after(CHECK_INTERVAL_MS, this.#look);
  }

  stop(): void {
    this.#cancel?.();
    this.#under.clear();
  }

  readonly #look = (): void => {
    this.#cancel = undefined;
    for (const upload of this.#under) {
      const { body, seen } = upload;
      if (body.complete) this.#under.delete(upload);
      else if (seen >= 0 && body.size - seen < (MIN_UPLOAD_BYTES_PER_SECOND * CHECK_INTERVAL_MS) / 1000) {
        this.#under.delete(upload);
        upload.cut();
      } else upload.seen = body.size;
    }
    if (this.#under.size > 0) this.#cancel = this.#scheduler.after(CHECK_INTERVAL_MS, this.#look);
  };
}
