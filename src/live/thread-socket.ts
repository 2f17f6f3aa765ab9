import type { JsonObject } from "../model/json.ts";
import type { RunRecord, StreamMode } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Socket } from "../ports/transport.ts";
import { packMessage } from "../codec/msgpack.ts";
import { followThread } from "../service/following.ts";
import { type Frames, frames } from "../stream/frames.ts";
import type { ThreadReader } from "../stream/thread-reader.ts";
import { type View, viewOf } from "../stream/view.ts";
import { FLOOD } from "./closing.ts";
import { commander } from "./command.ts";
import { Commands } from "./commands.ts";
import type { Asked, LiveDeps } from "./deps.ts";
import { type Mirror, mirror } from "./mirror.ts";
import { mirrorParams, uuidOf } from "./params.ts";

/** Answers that a peer may leave untaken. */
const UNTAKEN = 128;

/** Mirrors the events of all runs of a thread, and takes commands. */
export async function openThreadSocket(deps: LiveDeps, socket: Socket, asked: Asked): Promise<void> {
  const { scheduler, logger } = deps;
  let gone = false;
  socket.onClose(() => (gone = true));
  const key: ThreadKey = { tenant: asked.tenant, thread: uuidOf(asked.parts[0], "thread_id") };
  const { after, modes } = mirrorParams(asked.query, asked.lastEventId);
  const opened = followThread(deps, key, after).then((reader): Mirror | undefined => {
    if (gone) {
      reader.close();
      return undefined;
    }
    return mirror(reader, socket, viewsOf(reader, modes, asked.packed), { scheduler, logger });
  });
  const pack = (answer: JsonObject) => (asked.packed ? packMessage(answer) : JSON.stringify(answer));
  const commands = new Commands(commander(deps, key), async (answer) => {
    const untaken = (await opened)?.say(pack(answer)) ?? 0;
    if (untaken > UNTAKEN) socket.close(...FLOOD);
  });
  // Also those that come before the thread is found: they wait for it.
  const found = opened.then(() => undefined);
  found.catch(() => undefined);
  socket.onMessage((message) => commands.take(message, found));
  await opened;
}

/** Each run is seen in the modes that were asked for, or in its own. */
function viewsOf(
  reader: ThreadReader,
  modes: readonly StreamMode[] | undefined,
  packed: boolean,
): () => View<Frames> {
  let of: RunRecord | undefined;
  let view: View<Frames> | undefined;
  return () => {
    const { run } = reader;
    if (run === undefined) throw new TypeError("no run is being read");
    if (view !== undefined && run === of) return view;
    of = run;
    view = viewOf(modes ?? run.kwargs.stream_mode, run.kwargs.subgraphs, frames(packed, run));
    return view;
  };
}
