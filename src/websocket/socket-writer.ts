import type { Socket } from "../ports/transport.ts";
import type { WebSocketFrames } from "../stream/websocket-frames.ts";
import type { PumpOutcome, PumpOutput } from "../stream/stream-pump.ts";
import { closeFrames } from "./close-codes.ts";

/**
 * If the unsent events for a slow peer have more bytes or characters than this together, all of them are dropped, and read again when the
 * peer has caught up. Events that cannot be read again are kept.
 */
const MAX_UNSENT_LENGTH = 128 * 1024;

const NONE: WebSocketFrames = { messages: [], ids: [] };

/** Sends events over a WebSocket. Answers to commands are sent between events. */
export class SocketWriter implements PumpOutput<WebSocketFrames> {
  readonly #socket: Socket;
  readonly #isRereadable: boolean;
  /** The messages of the current chunk, shared with other readers. */
  #frames = NONE;
  /** The number of messages in `#frames` that have been sent. */
  #index = 0;
  #answers: (string | Uint8Array)[] = [];

  constructor(socket: Socket, isRereadable = true) {
    this.#socket = socket;
    this.#isRereadable = isRereadable;
  }

  /** The number of answers that have not been passed to the socket yet. */
  get backlog(): number {
    return this.#answers.length;
  }

  /** Adds an answer to the next flush. */
  say(answer: string | Uint8Array): void {
    this.#answers.push(answer);
  }

  put(frames: WebSocketFrames): boolean {
    this.#frames = frames;
    this.#index = 0;
    return this.flush();
  }

  flush(): boolean {
    const waiting = this.#answers.length + this.#frames.messages.length - this.#index;
    if (waiting < 2) return this.#flush();
    let all = false;
    const free = this.#socket.together(() => {
      all = this.#flush();
    });
    return all && free;
  }

  #flush(): boolean {
    for (const [i, answer] of this.#answers.entries()) {
      if (this.#socket.send(answer)) continue;
      this.#answers.splice(0, i + 1);
      return false;
    }
    this.#answers = [];
    const { messages } = this.#frames;
    while (this.#index < messages.length) {
      if (!this.#socket.send(messages[this.#index++] as string | Uint8Array)) return false;
    }
    this.#frames = NONE;
    this.#index = 0;
    return true;
  }

  shed(): number | undefined {
    if (!this.#isRereadable) return undefined;
    const { messages, ids } = this.#frames;
    let left = 0;
    for (let i = this.#index; i < messages.length; i++) left += (messages[i] as string | Uint8Array).length;
    if (left <= MAX_UNSENT_LENGTH) return undefined;
    let next = this.#index;
    // Several messages may have the same id, such as those of a checkpoint and of its state update. If one of them was not sent, all of
    // them are sent again.
    while (next > 0 && ids[next - 1] === ids[next]) next--;
    const sent = next === 0 ? (ids[0] as number) - 1 : (ids[next - 1] as number);
    this.#frames = NONE;
    this.#index = 0;
    return sent;
  }

  finish(outcome: Exclude<PumpOutcome, "left">): void {
    this.#socket.close(...closeFrames[outcome]);
  }
}
