/**
 * Structures (msgpackr's term) of objects that are stored often: the names of their members, in order. An object with exactly the names of
 * a structure, in this order, is stored as the structure's number and the values of its members. Structures MUST NOT change, because stored
 * data refers to their numbers. New structures are added at the end, up to {@link MAX_STRUCTURES}.
 */
export const MSGPACK_STRUCTURES: readonly (readonly string[])[] = [
  // The arguments of a run (`kwargs`).
  [
    "input",
    "command",
    "config",
    "context",
    "webhook",
    "temporary",
    "stream_mode",
    "feedback_keys",
    "interrupt_before",
    "interrupt_after",
    "subgraphs",
    "resumable",
    "durability",
  ],
  ["configurable", "metadata"],
  ["user_id", "checkpoint_id", "run_id", "thread_id", "graph_id", "assistant_id"],
  // Metadata: of a run, of a checkpoint, of a thread.
  ["created_by", "graph_id", "assistant_id"],
  ["user_id", "run_id", "thread_id", "graph_id", "assistant_id", "created_by"],
  ["graph_id", "assistant_id"],
  // Entries of the journal.
  ["kind", "epoch"],
  ["kind", "epoch", "runs"],
  ["kind", "epoch", "checkpoints"],
  ["kind", "epoch", "runs", "checkpoints"],
  // In a checkpoint: a task, the engine data, references to the values of the channels.
  ["id", "name", "path", "triggers"],
  ["id", "name", "path", "triggers", "input"],
  ["stop"],
  ["at", "channels"],
  ["is"],
  ["value"],
  // Events of a run.
  ["t", "attempt"],
  ["t", "id", "ns", "step", "input"],
  ["t", "id", "name", "ns", "checkpoint", "triggers", "at"],
  ["t", "id", "name", "ns", "checkpoint", "triggers", "at", "input"],
  ["t", "id", "name", "ns", "checkpoint", "at", "update", "interrupts"],
  ["t", "ns", "data"],
  ["t", "m", "text"],
  ["t", "m", "chunk"],
  ["t", "id", "name", "ns", "meta"],
  ["t", "message", "streamed", "ns", "meta"],
  ["t", "ns", "task", "node", "level", "at", "message"],
  [
    "langgraph_step",
    "langgraph_node",
    "langgraph_triggers",
    "langgraph_path",
    "langgraph_checkpoint_ns",
    "checkpoint_ns",
  ],
  // Messages.
  ["role", "content"],
  ["content", "additional_kwargs", "response_metadata", "type", "name", "id", "example"],
  [
    "content",
    "additional_kwargs",
    "response_metadata",
    "type",
    "name",
    "id",
    "example",
    "tool_calls",
    "invalid_tool_calls",
    "usage_metadata",
  ],
  // The stored state of a machine, and its snapshot without the context.
  ["rest", "work", "started", "timers", "actions", "unset"],
  ["status", "historyValue", "children"],
  ["status", "output", "historyValue", "children"],
  // The slowest task of a run.
  ["name", "task_id", "duration_ms"],
];

/** The largest number of structures: the byte values 0x40 to 0x7f stand for them. */
const MAX_STRUCTURES = 0x40;
if (MSGPACK_STRUCTURES.length > MAX_STRUCTURES)
  throw new RangeError(`More than ${MAX_STRUCTURES} structures`);

type Numbers = ReadonlyMap<string, ReadonlyMap<number, readonly number[]>>;

/** The numbers of the structures, by the first name in a structure and then by its number of names. */
const NUMBERS: Numbers = numbered();

function numbered(): Numbers {
  const begin = new Map<string, Map<number, number[]>>();
  for (const [number, names] of MSGPACK_STRUCTURES.entries()) {
    const first = names[0] as string;
    const lengths = begin.get(first) ?? new Map<number, number[]>();
    lengths.set(names.length, [...(lengths.get(names.length) ?? []), number]);
    begin.set(first, lengths);
  }
  return begin;
}

/** The number of the structure with these names; -1 if there is none. */
export function structureNumber(names: readonly string[]): number {
  const { length } = names;
  const numbers = NUMBERS.get(names[0] as string)?.get(length);
  if (numbers === undefined) return -1;
  for (const number of numbers) {
    const structure = MSGPACK_STRUCTURES[number] as readonly string[];
    let i = 1;
    while (i < length && names[i] === structure[i]) i++;
    if (i === length) return number;
  }
  return -1;
}
