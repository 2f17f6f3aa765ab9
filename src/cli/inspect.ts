import { parseKeyList } from "../access/api-keys.ts";
import { ServiceError } from "../model/errors.ts";
import { parseUuid } from "../model/ids.ts";
import { openInspectorRelay, type InspectorRelay } from "./inspector-relay.ts";
import type { Invocation } from "./settings.ts";

type Asked = Extract<Invocation, { command: "inspect" }>;
type Env = { readonly [name: string]: string | undefined };

/** Prints where the inspector is. With a relay port it serves the inspector's feed there, until the process ends. */
export async function inspect(
  { url, thread, relay }: Asked,
  env: Env,
  say: (line: string) => void,
): Promise<InspectorRelay | undefined> {
  const id = thread === undefined ? undefined : parseUuid(thread);
  if (thread !== undefined && id === undefined) {
    throw new ServiceError("config.invalid", `"${thread}" is no thread's id: it must be a UUID`);
  }
  const query = id === undefined ? "" : `?thread_id=${id}`;
  const page = `${url}/inspector${query}`;
  say(page);
  if (relay === undefined) return undefined;
  const feed = `${url.replace(/^http/, "ws")}/inspect${query}`;
  const opened = await openInspectorRelay({ feed, key: keyOf(env), page, port: relay }).catch(
    (cause: unknown) => {
      throw new ServiceError("server.address", `Port ${relay} cannot be had: ${(cause as Error).message}`, {
        cause,
      });
    },
  );
  say(`The feed is on ws://localhost:${opened.port}`);
  return opened;
}

/** The key to send: `HEDDLE_API_KEY`, or the first of `HEDDLE_API_KEYS`. */
function keyOf({ HEDDLE_API_KEY: key = "", HEDDLE_API_KEYS: keys = "" }: Env): string | undefined {
  if (key !== "") return key;
  return keys === "" ? undefined : parseKeyList(keys)[0]?.replace(/^[a-z0-9_-]{1,64}:/, "");
}
