import type { Socket } from "../ports/transport.ts";
import type { Frames } from "../stream/websocket-frames.ts";
import { StreamPump, type PumpOptions } from "../stream/stream-pump.ts";
import type { Reader } from "../stream/run-reader.ts";
import { render, type StreamView } from "../stream/rendering.ts";
import { SocketWriter } from "./socket-writer.ts";

/** Sends other messages while events are sent. */
export interface EventMirror {
  /** Sends an answer as soon as the peer takes it. Returns the number of answers that the peer has not taken. */
  say(answer: string | Uint8Array): number;
}

/** Sends events over a WebSocket, one message for each, until they end, the socket closes or its peer stalls. */
export function mirrorEvents(
  reader: Reader,
  socket: Socket,
  view: () => StreamView<Frames>,
  options: PumpOptions,
): EventMirror {
  const outlet = new SocketWriter(socket);
  const pump = new StreamPump(reader, (segment) => render(segment, view()), outlet, options);
  socket.onDrain(pump.drained);
  let gone = false;
  socket.onClose(() => {
    gone = true;
    pump.left();
  });
  pump.start();
  return {
    say(answer) {
      if (gone) return 0;
      outlet.say(answer);
      pump.nudge();
      return outlet.backlog;
    },
  };
}
