import type { PlannedTask } from "../model/checkpoint.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { Emission, EngineStep, StreamedFact } from "../ports/engine.ts";
import type { ChannelRule } from "../graph/channel.ts";
import type { GraphDefinition } from "../graph/definition.ts";
import type { Message } from "../graph/message.ts";
import { applyUpdates } from "../graph/superstep.ts";
import type { SuperstepState } from "./superstep-state.ts";
import { StreamedContentBlocks } from "./streamed-content-blocks.ts";

/** The state key that keeps the partial messages of a stopped run, and the rule of this key. */
export type PartialMessagesChannel = readonly [key: string, rule: ChannelRule];

export function findPartialMessagesKey({ rules }: GraphDefinition): PartialMessagesChannel | undefined {
  for (const entry of rules) if (entry[1].keepsPartial === true) return entry;
  return undefined;
}

/** Makes a checkpoint with the messages that the tasks of a stopped step have streamed so far; null if there are none. */
export function makePartialOutputStep(
  superstep: SuperstepState,
  [key, rule]: PartialMessagesChannel,
  streamed: ReadonlyMap<string, readonly StreamedFact[]>,
  meta: (task: PlannedTask) => JsonObject,
): EngineStep | null {
  const { head, pendingWrites } = superstep;
  if (head === null) return null;
  const emissions: Emission[] = [];
  const updates: JsonObject[] = [];
  const writes: Record<string, unknown> = {};
  for (const task of superstep.tasks.values()) {
    // Also keeps the whole messages of finished tasks. When the run resumes, their updates are applied once more, which
    // changes nothing because the messages have ids.
    const returned = pendingWrites.get(task.id)?.result?.value;
    const update = isObject(returned) && Array.isArray(returned[key]) ? (returned[key] as Message[]) : [];
    const whole = update.filter((message) => message.type === "ai");
    const partials = rule.read(
      interruptedMessages(streamed.get(task.id) ?? []),
      key,
      () => "",
    ) as readonly Message[];
    for (const partial of partials) {
      const message = partial as unknown as JsonObject;
      emissions.push({
        fact: { t: "complete", message, streamed: true, ns: superstep.ns, meta: meta(task) },
      });
    }
    const messages = [...whole, ...partials];
    if (messages.length === 0) continue;
    updates.push({ [key]: messages });
    writes[task.name] = { [key]: messages };
  }
  if (updates.length === 0) return null;
  const { values, changes } = applyUpdates(superstep.definition, superstep.values, updates);
  superstep.values = values;
  const made = superstep.checkpoint("update", writes, () => head.next, changes);
  emissions.push(superstep.checkpointFact(false));
  return { checkpoints: [made], writes: [], emissions, values, plan: { kind: "done" } };
}

interface PartialMessage {
  readonly id: string;
  readonly name: string | null;
  readonly model: unknown;
  text: string;
  blocks: StreamedContentBlocks | undefined;
}

/**
 * The partial messages that a task has streamed, each marked as interrupted. Tool calls are left out, because nobody will
 * answer them, and models refuse conversations with unanswered calls. Messages without content are left out too.
 */
function interruptedMessages(streamed: readonly StreamedFact[]): readonly JsonObject[] {
  const begun = new Map<number, PartialMessage>();
  for (const { id, fact } of streamed) {
    if (fact.t === "message") {
      const { id: message, name, meta } = fact;
      begun.set(id, { id: message, name, model: meta["ls_model_name"], text: "", blocks: undefined });
    } else if (fact.t === "token") {
      const message = begun.get(fact.m);
      if (message !== undefined) message.text += fact.text;
    } else if (fact.t === "piece" && Array.isArray(fact.chunk["content"])) {
      const message = begun.get(fact.m);
      if (message === undefined) continue;
      message.blocks ??= new StreamedContentBlocks(message.text);
      for (const block of fact.chunk["content"] as readonly JsonObject[]) message.blocks.add(block);
    }
  }
  const partials: JsonObject[] = [];
  for (const { id, name, model, text, blocks } of begun.values()) {
    // Leaves out the index, which is the same as the position in the list.
    const content = blocks?.list.map(({ index: _index, ...block }) => block) ?? text;
    if (content.length === 0) continue;
    const response_metadata = { ...(typeof model === "string" && { model_name: model }), interrupted: true };
    partials.push({ type: "ai", id, name, content, response_metadata });
  }
  return partials;
}
