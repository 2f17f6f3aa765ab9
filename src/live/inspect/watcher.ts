import type { Cancel, Scheduler } from "../../ports/scheduler.ts";
import type { Socket } from "../../ports/transport.ts";

/** Characters that wait for one peer, at most. Messages are shared by all that watch the same. */
const MOST = 1024 * 1024;
/** Milliseconds that a peer may take nothing while messages wait. */
const STALL = 10_000;

const SLOW = [1013, "Messages were not taken fast enough; connect again: the actors are shown anew"] as const;

/** A message, or how to make one: a late joiner is shown thousands of actors, at its own pace. */
export type Piece = string | (() => string);

/** One peer that watches. What it does not take waits, within bounds; a peer that is too slow is cut off. */
export class Watcher {
  readonly #socket: Socket;
  readonly #scheduler: Scheduler;
  #waiting: Piece[] = [];
  #next = 0;
  #size = 0;
  #blocked = false;
  #closed = false;
  #stall: Cancel | null = null;

  constructor(socket: Socket, scheduler: Scheduler) {
    this.#socket = socket;
    this.#scheduler = scheduler;
    socket.onDrain(() => {
      this.#blocked = false;
      this.#unstall();
      this.#flush();
    });
  }

  send(piece: Piece): void {
    if (this.#closed) return;
    this.#waiting.push(piece);
    if (typeof piece === "string") this.#size += piece.length;
    if (this.#blocked && this.#size > MOST) this.close(...SLOW);
    else this.#flush();
  }

  close(code: number, reason: string): void {
    if (this.#closed) return;
    this.gone();
    this.#socket.close(code, reason);
  }

  /** The peer has left. */
  gone(): void {
    this.#closed = true;
    this.#unstall();
    this.#waiting = [];
  }

  #flush(): void {
    while (!this.#blocked && !this.#closed && this.#next < this.#waiting.length) {
      const piece = this.#waiting[this.#next++] as Piece;
      if (typeof piece === "string") this.#size -= piece.length;
      if (!this.#socket.send(typeof piece === "string" ? piece : piece())) this.#blocked = true;
    }
    if (this.#next >= this.#waiting.length) {
      this.#waiting = [];
      this.#next = 0;
    }
    if (this.#blocked && !this.#closed) {
      this.#stall ??= this.#scheduler.after(STALL, () => this.close(...SLOW));
    }
  }

  #unstall(): void {
    this.#stall?.();
    this.#stall = null;
  }
}
