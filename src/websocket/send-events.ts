import type { Eventually } from "../ports/eventually.ts";
import type { Socket } from "../ports/transport.ts";
import type { WebSocketFrames } from "../stream/websocket-frames.ts";
import { StreamPump, type PumpOptions } from "../stream/stream-pump.ts";
import type { Reader } from "../stream/run-reader.ts";
import type { ChunkSlice } from "../stream/rendering.ts";
import { TOO_MANY_COMMANDS_CLOSE } from "./close-codes.ts";
import { SocketWriter } from "./socket-writer.ts";

/** The largest number of answers that may wait for a peer that does not read them. */
const MAX_UNREAD_ANSWERS = 128;

/**
 * Sends an answer to a command as soon as the peer can receive it, between two events. Closes the socket if too many answers are unread.
 */
export type SendAnswer = (answer: string | Uint8Array) => void;

/**
 * Sends events over a WebSocket, one message for each event. Sending ends when there are no more events, when the socket is closed, or when
 * the peer reads nothing for too long. `isRereadable`: if a slow peer has not read events, they may be dropped and read again later,
 * starting at any event.
 */
export function sendEvents(
  reader: Reader,
  socket: Socket,
  render: (slice: ChunkSlice) => Eventually<WebSocketFrames>,
  options: PumpOptions,
  isRereadable = true,
): SendAnswer {
  const writer = new SocketWriter(socket, isRereadable);
  const pump = new StreamPump(reader, render, writer, options);
  socket.onDrain(pump.drained);
  let gone = false;
  socket.onClose(() => {
    gone = true;
    pump.left();
  });
  pump.start();
  return (answer) => {
    if (gone) return;
    writer.say(answer);
    pump.nudge();
    if (writer.backlog > MAX_UNREAD_ANSWERS) socket.close(...TOO_MANY_COMMANDS_CLOSE);
  };
}
