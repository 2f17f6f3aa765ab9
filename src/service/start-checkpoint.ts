import { ServiceError, invalidField } from "../model/errors.ts";
import { parseUuid } from "../model/ids.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import { parentNamespaces, LATEST_CHECKPOINT, type StartCheckpoint } from "../model/start-checkpoint.ts";
import type { ThreadKey } from "../model/thread.ts";
import { isResume } from "../graph/interrupts.ts";
import type { Journal } from "../ports/journal.ts";
import type { RunRequest } from "./run-draft.ts";

/** A checkpoint as a request names it. */
interface RequestedCheckpoint {
  readonly checkpoint_id?: unknown;
  readonly checkpoint_ns?: unknown;
  readonly checkpoint_map?: unknown;
}

type Asked = Pick<RunRequest, "checkpoint" | "checkpoint_id" | "config" | "command">;

/**
 * Finds the checkpoint that a run starts from. `checkpoint` takes precedence over `checkpoint_id`, and both over the checkpoint in
 * `config`. If none of them has an id, the entry for the namespace in `checkpoint_map` counts; without such an entry, the run starts from
 * the latest checkpoint.
 * @throws ServiceError `checkpoint.not_found`, `validation.failed`
 */
export function resolveRunStart(
  journal: Journal,
  key: ThreadKey,
  asked: Asked,
): StartCheckpoint | Promise<StartCheckpoint> {
  const { checkpoint, checkpoint_id } = asked;
  const configurable = asked.config?.["configurable"];
  const configured: RequestedCheckpoint = isObject(configurable) ? configurable : {};
  const ns = checkpoint?.checkpoint_ns ?? configured.checkpoint_ns ?? "";
  const given = checkpoint?.checkpoint_map ?? configured.checkpoint_map ?? {};
  const map: JsonObject = isObject(given) ? given : {};
  const named = checkpoint?.checkpoint_id ?? checkpoint_id ?? configured.checkpoint_id;
  const id = parseUuid(named) ?? mapped(map, String(ns)) ?? null;
  if (typeof ns === "string" && ns !== "") return within(journal, key, asked, { ns, id, map });
  return id === null ? LATEST_CHECKPOINT : atRoot(journal, key, id);
}

async function atRoot(journal: Journal, key: ThreadKey, id: string): Promise<StartCheckpoint> {
  if ((await journal.checkpoint(key, "", id)) === undefined) throw unknown(id, "");
  return { checkpoint_id: id };
}

/**
 * Finds the subgraph's checkpoint from which a run starts, and the checkpoints of the graphs above the subgraph. The run gives each of
 * these graphs a new branch.
 */
async function within(
  journal: Journal,
  key: ThreadKey,
  { command }: Asked,
  { ns, id, map }: { readonly ns: string; readonly id: string | null; readonly map: JsonObject },
): Promise<StartCheckpoint> {
  const [latest] = await journal.history(key, { ns, limit: 1 });
  const found = id === null ? latest : await journal.checkpoint(key, ns, id);
  if (latest === undefined || found === undefined) throw unknown(id, ns);
  if (found.id !== latest.id && command !== undefined && isResume(command)) {
    throw invalidField(
      "command.resume",
      `goes to where the subgraph waits, which is its checkpoint ${latest.id}`,
    );
  }
  const known = found.metadata["parents"];
  const places: Record<string, string> = {};
  const segments = ns.split("|");
  for (const [depth, over] of parentNamespaces(ns).entries()) {
    const own = mapped(map, over) ?? mapped(isObject(known) ? known : {}, over);
    // A namespace above the subgraph may have no checkpoint: a graph that a node's function calls directly has none of its own.
    if (own === undefined && over !== "") continue;
    // oxlint-disable-next-line no-await-in-loop -- from the root down, and graphs are not nested deep
    const checkpoint = own === undefined ? undefined : await journal.checkpoint(key, over, own);
    if (checkpoint === undefined) throw unknown(own ?? null, over);
    const [name, task] = (segments[depth] ?? "").split(":");
    if (!checkpoint.next.some((next) => next.name === name && (task === undefined || next.id === task))) {
      throw invalidField(
        "checkpoint.checkpoint_map",
        `leads to no such subgraph: "${segments[depth]}" does not run from checkpoint ${checkpoint.id}`,
      );
    }
    places[over] = checkpoint.id;
  }
  places[ns] = found.id;
  return { checkpoint_id: found.id, checkpoint_ns: ns, checkpoint_map: places };
}

function mapped(map: JsonObject, ns: string): string | undefined {
  return Object.hasOwn(map, ns) ? (parseUuid(map[ns]) ?? undefined) : undefined;
}

function unknown(id: string | null, ns: string): ServiceError {
  const what = id === null ? "No checkpoint" : `Checkpoint ${id} not found`;
  const where = ns === "" ? "" : ` in namespace "${ns.slice(0, 200)}"`;
  return new ServiceError("checkpoint.not_found", `${what}${where}`);
}
