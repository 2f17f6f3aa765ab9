import type { PlannedTask } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import type { Emission } from "../ports/engine.ts";
import type { Message, RemoveMessage } from "../graph/message.ts";
import { ownValue } from "../graph/superstep.ts";
import type { SuperstepState } from "./superstep-state.ts";
import { messageMetadata } from "./message-metadata.ts";
import { isStreamedId, streamedIdBase } from "./streamed-message-ids.ts";

/**
 * Adds `complete` events for the messages in a task's update that the task has streamed or that are new to the state.
 * @param named ids that the node itself chose for messages that it streamed
 */
export function addCompleteEvents(
  superstep: SuperstepState,
  task: PlannedTask,
  update: JsonObject | null,
  named: readonly string[] | undefined,
  emissions: Emission[],
): void {
  const { definition, values, run, tries, ns } = superstep;
  let ids: string | undefined;
  for (const key in update) {
    const rule = definition.rules.get(key);
    if (rule?.holds === undefined) continue;
    for (const message of update[key] as readonly (Message | RemoveMessage)[]) {
      ids ??= streamedIdBase(task.id, run.attempt, tries.get(task.id) ?? 1);
      const streamed = isStreamedId(ids, message.id) || named?.includes(message.id) === true;
      if (!streamed && message.type !== "remove" && rule.holds(ownValue(values, key), message.id)) continue;
      const shown = message as unknown as JsonObject;
      emissions.push({
        fact: { t: "complete", message: shown, streamed, ns, meta: messageMetadata(superstep, task) },
      });
    }
  }
}
