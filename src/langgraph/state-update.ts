import type { RunnableConfig } from "@langchain/core/runnables";
import { ServiceError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import type { CheckpointWithState, ExecutionServices } from "../ports/engine.ts";
import type { StateUpdate, StateWrite, StateUpdateResult } from "../ports/state-update.ts";
import { copyGraph } from "./node-interception.ts";
import { toLangGraphCommand } from "./run-invocation.ts";
import { type CheckpointPayload, plannedTaskOf, toStateObject } from "./graph-progress.ts";
import type { SaverCheckpoint } from "./saver-inputs.ts";
import { toCheckpointRecord, storedLangGraphData } from "./checkpoint-records.ts";
import { createAttemptSaver } from "./checkpoint-saver.ts";
import { CheckpointIdMap } from "./checkpoint-id-map.ts";
import type { CompiledGraph, LoadedLangGraph } from "./exported-graph.ts";

/** A thread id for this computation only. Nothing is stored under it. */
const TEMPORARY_THREAD = "thread";

/**
 * Computes the checkpoint that a state update makes after an existing checkpoint. LangGraph computes it with a saver that contains only the
 * existing checkpoint; the last checkpoint that LangGraph puts to this saver is the result.
 */
export async function computeStateUpdate(
  loaded: LoadedLangGraph,
  hosted: CompiledGraph,
  update: StateUpdate,
  position: CheckpointWithState,
  source: ExecutionServices,
): Promise<StateUpdateResult> {
  const { library, hash } = loaded;
  const { ns, latest, writes } = update;
  const { head, values } = position;
  const puts: SaverCheckpoint[] = [];
  const graph = copyGraph(hosted);
  graph.checkpointer = createAttemptSaver(library, TEMPORARY_THREAD, {
    ids: new CheckpointIdMap(source),
    read: async (at, id) => (at === ns && head !== null && (id === null || id === head.id) ? position : null),
    history: async () => [],
    put: (made) => void puts.push(made),
    putWrites: () => undefined,
  });
  const place = { thread_id: TEMPORARY_THREAD, checkpoint_ns: ns };
  const start = latest || head === null ? place : { ...place, checkpoint_id: head.id };
  await refusing(writes, () =>
    graph.bulkUpdateState({ configurable: start } as RunnableConfig, [
      { updates: writes.map((write) => updateOf(loaded, write)) as unknown as never[] },
    ]),
  );
  const raw = puts.at(-1);
  if (raw === undefined) throw new TypeError("LangGraph has made no checkpoint of the update");
  const made = await graph.getState({ configurable: { ...place, checkpoint_id: raw.id } });
  const shown = toStateObject(made.values);
  const channels = storedLangGraphData(head?.engine ?? null)?.channels;
  const before = { shown: values, ...(channels !== undefined && { channels }) };
  const record = toCheckpointRecord(raw, shown, before);
  const checkpoint = {
    ...record,
    // LangGraph makes a checkpoint for each update. Only the last of them is stored, so its parent is the checkpoint before the first
    // update.
    parent: head?.id ?? null,
    run_id: null,
    metadata: { ...record.metadata, ...update.metadata },
    writes: writesOf(writes),
    next: (made.tasks as CheckpointPayload["tasks"]).map(plannedTaskOf),
    graph: hash,
  };
  return { checkpoint, values: shown };
}

function updateOf({ library }: LoadedLangGraph, { values, command, as_node }: StateWrite): object {
  const given = command === undefined || command === null ? values : toLangGraphCommand(library, command, []);
  return { values: given, ...(as_node !== null && { asNode: as_node }) };
}

/** Matches LangGraph's messages about a wrong node: a node that is unknown, missing, or internal and not usable here. */
const NAMES_NODE = /^(Node "|No writers found|Ambiguous update|"asNode"|Cannot (copy|apply|create))/;

/** The written values by the node named in `as_node`. A node with several writes has a list of values. Null if no write names a node. */
function writesOf(writes: readonly StateWrite[]): JsonObject | null {
  const byNode = new Map<string, unknown[]>();
  for (const { as_node, values, command } of writes) {
    const written = values ?? command?.update;
    if (as_node === null || written === undefined || written === null) continue;
    byNode.set(as_node, [...(byNode.get(as_node) ?? []), written]);
  }
  if (byNode.size === 0) return null;
  return Object.fromEntries([...byNode].map(([name, list]) => [name, list.length === 1 ? list[0] : list]));
}

/** Calls `update`. @throws ServiceError `validation.failed` if LangGraph refuses the update */
async function refusing(writes: readonly StateWrite[], update: () => Promise<unknown>): Promise<void> {
  try {
    await update();
  } catch (cause) {
    if (cause instanceof ServiceError) throw cause;
    const { message } = cause instanceof Error ? cause : { message: String(cause) };
    const field = NAMES_NODE.test(message) ? "as_node" : "values";
    const at = writes[0]?.at ?? "";
    const apiMessage = message.replaceAll("asNode", "as_node");
    throw new ServiceError("validation.failed", apiMessage, {
      cause,
      fields: [{ at: `${at}${field}`, message: apiMessage }],
    });
  }
}
