import type { PlannedTask } from "../model/checkpoint.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { Emission, Step, StreamedFact } from "../ports/engine.ts";
import type { Rule } from "../graph/channel.ts";
import type { Definition } from "../graph/definition.ts";
import type { Message } from "../graph/message.ts";
import { applyUpdates } from "../graph/superstep.ts";
import type { Frame } from "./superstep-state.ts";
import { partialsOf } from "./partial-messages.ts";

/** The state key that keeps the partial messages of a stopped run, with its rule. */
export type Keeper = readonly [key: string, rule: Rule];

export function keeperOf({ rules }: Definition): Keeper | undefined {
  for (const entry of rules) if (entry[1].keepsPartial === true) return entry;
  return undefined;
}

/** Makes a checkpoint with the messages that the tasks of a stopped step have streamed so far; null if there are none. */
export function cutStep(
  frame: Frame,
  [key, rule]: Keeper,
  streamed: ReadonlyMap<string, readonly StreamedFact[]>,
  meta: (task: PlannedTask) => JsonObject,
): Step | null {
  const { head, left } = frame;
  if (head === null) return null;
  const emissions: Emission[] = [];
  const updates: JsonObject[] = [];
  const writes: Record<string, unknown> = {};
  for (const task of frame.tasks.values()) {
    // Whole messages of finished tasks are kept too. When the run resumes they are applied again, which changes nothing.
    const returned = left.get(task.id)?.result?.value;
    const update = isObject(returned) && Array.isArray(returned[key]) ? (returned[key] as Message[]) : [];
    const whole = update.filter((message) => message.type === "ai");
    const partials = rule.read(partialsOf(streamed.get(task.id) ?? []), key, () => "") as readonly Message[];
    for (const partial of partials) {
      const message = partial as unknown as JsonObject;
      emissions.push({ fact: { t: "complete", message, streamed: true, ns: frame.ns, meta: meta(task) } });
    }
    const said = [...whole, ...partials];
    if (said.length === 0) continue;
    updates.push({ [key]: said });
    writes[task.name] = { [key]: said };
  }
  if (updates.length === 0) return null;
  const { values, changes } = applyUpdates(frame.definition, frame.values, updates);
  frame.values = values;
  const made = frame.checkpoint("update", writes, () => head.next, changes);
  emissions.push(frame.announce(false));
  return { checkpoints: [made], writes: [], emissions, values, plan: { kind: "done" } };
}
