import type { JsonText } from "../codec/large-json.ts";
import { packForClients } from "../codec/value-encoding.ts";
import type { RunRecord } from "../model/run.ts";
import type { OutputFormat } from "./rendering.ts";

/** Events as WebSocket messages: one message for each event, in order. */
export interface WebSocketFrames {
  readonly messages: readonly (string | Uint8Array)[];
  /** The id of each event in its run. */
  readonly ids: readonly number[];
}

/**
 * The format of events in WebSocket messages: `{"id","event","data"}`, as JSON text or, with `packed`, as MessagePack. With `run`, for the
 * stream of a whole thread, messages also have `run_id`, and their ids are the thread's event numbers.
 */
export function webSocketFormat(packed: boolean, run?: RunRecord): OutputFormat<WebSocketFrames> {
  const base = run?.seq_base ?? 0;
  const beside = run === undefined ? {} : { run_id: run.run_id };
  // The text that follows the data.
  const end = run === undefined ? "}" : `,"run_id":"${run.run_id}"}`;
  const message = (id: number, event: string, data: JsonText): string | Uint8Array =>
    packed
      ? packForClients({ id: String(base + id), event, data: JSON.parse(String(data)) as unknown, ...beside })
      : `{"id":"${base + id}","event":${JSON.stringify(event)},"data":${String(data)}${end}`;
  return {
    name: `${packed ? "msgpack" : "json"}${run === undefined ? "" : " of the thread"}`,
    begin() {
      const messages: (string | Uint8Array)[] = [];
      const ids: number[] = [];
      return {
        put(id, event, data) {
          messages.push(message(id, event, data));
          ids.push(id);
        },
        done: () => ({ messages, ids }),
      };
    },
  };
}
