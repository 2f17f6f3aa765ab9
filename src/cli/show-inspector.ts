import { parseKeyList } from "../access/api-keys.ts";
import { ServiceError } from "../model/errors.ts";
import { parseUuid } from "../model/ids.ts";
import { openInspectorRelay, type InspectorRelay } from "./inspector-relay.ts";
import { readAddress } from "./address-file.ts";
import { withAbortTimeout } from "./with-abort-timeout.ts";
import { portHint, type Invocation } from "./command-line.ts";

type Asked = Extract<Invocation, { command: "inspect" }>;
type Env = { readonly [name: string]: string | undefined };

/** Milliseconds in which the server must respond. */
const ANSWER_TIMEOUT_MS = 5_000;

/**
 * Prints the address of the inspector, if a server responds at `url`. If a relay port is given, also serves the inspector's feed on this
 * port, and resolves with the relay; otherwise resolves with undefined.
 * @throws ServiceError `config.invalid` if the thread's id is not a UUID; `server.address` if no server responds or the port cannot be used
 */
export async function showInspector(
  { url: address, data, thread, relay }: Asked,
  env: Env,
  say: (line: string) => void,
): Promise<InspectorRelay | undefined> {
  const url = (data === undefined ? undefined : readAddress(data)) ?? address;
  const id = thread === undefined ? undefined : parseUuid(thread);
  if (thread !== undefined && id === undefined) {
    throw new ServiceError("config.invalid", `"${thread}" is no thread's id: it must be a UUID`);
  }
  const query = id === undefined ? "" : `?thread_id=${id}`;
  const page = `${url}/inspector${query}`;
  await checkServer(url);
  say(page);
  if (relay === undefined) return undefined;
  const feed = `${url.replace(/^http/, "ws")}/inspect${query}`;
  const opened = await openInspectorRelay({ feed, key: keyOf(env), page, port: relay }).catch(
    (cause: unknown) => {
      const why = (cause as Error).message;
      const message = `The relay cannot listen at port ${relay}: ${why}; ${portHint("--relay")}`;
      throw new ServiceError("server.address", message, { cause });
    },
  );
  say(`The feed is on ws://localhost:${opened.port}`);
  return opened;
}

/** Checks that a Heddle server responds at this URL. @throws ServiceError `server.address` if it does not */
async function checkServer(url: string): Promise<void> {
  let status: number;
  try {
    // The health check needs no API key.
    const response = await withAbortTimeout((signal) => fetch(`${url}/ok`, { signal }), ANSWER_TIMEOUT_MS);
    await response.body?.cancel();
    status = response.status;
  } catch (cause) {
    const { code } = ((cause as Error).cause ?? {}) as { readonly code?: string };
    const why = code ?? (cause as Error).message;
    const hint = "start one with heddle dev; where one runs already, --port and --host name its address";
    throw new ServiceError("server.address", `No server answers at ${url} (${why}): ${hint}`, { cause });
  }
  if (status === 200) return;
  const hint = "HEDDLE_MOUNT_PREFIX is what the paths of a server begin with";
  throw new ServiceError("server.address", `What answers at ${url} is not Heddle (${status}); ${hint}`);
}

/** The API key to send: `HEDDLE_API_KEY`, else the first key of `HEDDLE_API_KEYS` without its tenant; undefined if neither is set. */
function keyOf({ HEDDLE_API_KEY: key = "", HEDDLE_API_KEYS: keys = "" }: Env): string | undefined {
  if (key !== "") return key;
  return keys === "" ? undefined : parseKeyList(keys)[0]?.replace(/^[a-z0-9_-]{1,64}:/, "");
}
