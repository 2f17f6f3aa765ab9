import type { Cancel, Scheduler } from "../../ports/scheduler.ts";
import type { Socket } from "../../ports/transport.ts";

/** The largest number of characters that may wait for one peer. Peers that watch the same actors share the message strings in memory. */
const MAX_WAITING_CHARACTERS = 1024 * 1024;
/** If more characters than this were collected in one turn of the event loop, they are sent before the turn ends. */
const MAX_GATHERED_CHARACTERS = 16 * 1024;
/** Milliseconds after which a peer is disconnected if messages wait and it reads nothing. */
const STALL_MS = 10_000;

const SLOW = [1013, "Messages were not taken fast enough; connect again: the actors are sent again"] as const;

/**
 * A message, or a function that creates the message when it is sent. The function is used for the actors that a new peer receives: there
 * may be thousands, and only those that the peer is ready to receive should be in memory.
 */
export type InspectorMessage = string | (() => string);

/**
 * The sending side of one inspector socket. Messages that the peer cannot receive yet wait here, up to a limit. A peer that is too slow is
 * disconnected.
 */
export class InspectorPeer {
  readonly #socket: Socket;
  readonly #scheduler: Scheduler;
  #waiting: InspectorMessage[] = [];
  #next = 0;
  #size = 0;
  #blocked = false;
  #closed = false;
  #stall: Cancel | null = null;
  /**
   * True if a flush is scheduled for the end of this turn of the event loop. The flush sends all messages of the turn with one system call.
   */
  #due = false;

  constructor(socket: Socket, scheduler: Scheduler) {
    this.#socket = socket;
    this.#scheduler = scheduler;
    socket.onDrain(() => {
      this.#blocked = false;
      this.#unstall();
      this.#flush();
    });
  }

  send(piece: InspectorMessage): void {
    if (this.#closed) return;
    this.#waiting.push(piece);
    if (typeof piece === "string") this.#size += piece.length;
    if (this.#blocked) {
      if (this.#size > MAX_WAITING_CHARACTERS) this.close(...SLOW);
    } else if (this.#size > MAX_GATHERED_CHARACTERS) this.#flush();
    else if (!this.#due) {
      this.#due = true;
      this.#scheduler.soon(() => {
        this.#due = false;
        this.#flush();
      });
    }
  }

  close(code: number, reason: string): void {
    if (this.#closed) return;
    this.gone();
    this.#socket.close(code, reason);
  }

  /** Drops all messages, because the peer has disconnected. */
  gone(): void {
    this.#closed = true;
    this.#unstall();
    this.#waiting = [];
  }

  #flush(): void {
    if (this.#blocked || this.#closed || this.#waiting.length === 0) return;
    if (!this.#socket.together(this.#sendAll)) this.#blocked = true;
    if (this.#blocked && !this.#closed) {
      this.#stall ??= this.#scheduler.after(STALL_MS, () => this.close(...SLOW));
    }
  }

  readonly #sendAll = (): void => {
    while (!this.#blocked && !this.#closed && this.#next < this.#waiting.length) {
      const piece = this.#waiting[this.#next++] as InspectorMessage;
      if (typeof piece === "string") this.#size -= piece.length;
      if (!this.#socket.send(typeof piece === "string" ? piece : piece())) this.#blocked = true;
    }
    if (this.#next >= this.#waiting.length) {
      this.#waiting = [];
      this.#next = 0;
    }
  };

  #unstall(): void {
    this.#stall?.();
    this.#stall = null;
  }
}
