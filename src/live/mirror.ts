import type { Socket } from "../ports/transport.ts";
import { type Outcome, type Outlet, Pump, type PumpOptions } from "../stream/pump.ts";
import type { Reader } from "../stream/reader.ts";
import type { View } from "../stream/view.ts";

/** How the peer is told why it ends: RFC 6455 §7.4, and the codes that IANA has added. */
const closing: Readonly<Record<Exclude<Outcome, "left">, readonly [code: number, reason: string]>> = {
  ended: [1000, "The run has ended"],
  cut: [1012, "The stream was broken off; connect again with last_event_id"],
  stalled: [1013, "Events were not taken for too long; connect again with last_event_id"],
  failed: [1011, "The run's events could not be read"],
};

/** Sends a run's events over a WebSocket, one text message for each, until the run ends. */
export function mirror(
  reader: Reader,
  socket: Socket,
  view: View<readonly string[]>,
  options: PumpOptions,
): void {
  const pump = new Pump(reader, view, new SocketOutlet(socket), options);
  socket.onDrain(pump.drained);
  socket.onClose(() => pump.left());
  pump.start();
}

class SocketOutlet implements Outlet<readonly string[]> {
  readonly #socket: Socket;
  /** The chunk at hand, shared with other readers, and how far it has been sent. */
  #frames: readonly string[] = [];
  #place = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  put(frames: readonly string[]): boolean {
    this.#frames = frames;
    this.#place = 0;
    return this.flush();
  }

  flush(): boolean {
    while (this.#place < this.#frames.length) {
      if (!this.#socket.send(this.#frames[this.#place++] as string)) return false;
    }
    this.#frames = [];
    this.#place = 0;
    return true;
  }

  finish(outcome: Exclude<Outcome, "left">): void {
    this.#socket.close(...closing[outcome]);
  }
}
