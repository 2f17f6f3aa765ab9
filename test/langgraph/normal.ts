import { serialise } from "../../src/langgraph/serialisation.ts";

/** One event of a stream: its mode, its graph, and its data. */
export interface Shown {
  readonly mode: string;
  readonly ns: string;
  readonly data: unknown;
}

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(serialise(value) ?? null)) as unknown;

type Loose = Record<string, unknown>;

/** The part of an event that both sides have in common. */
export function normal({ mode, ns, data }: Shown): readonly unknown[] {
  return [mode, mode === "messages" ? graphOf(ns, data) : ns, payload(mode, plain(data) as Loose)];
}

/** The namespace of the graph that a message comes from: below 1.7, LangGraph streams it under that of the task. */
function graphOf(ns: string, data: unknown): string {
  const [, { langgraph_checkpoint_ns: task }] = data as [unknown, Loose];
  return ns === task ? ns.split("|").slice(0, -1).join("|") : ns;
}

function payload(mode: string, data: Loose): unknown {
  switch (mode) {
    case "values":
    case "updates":
      return Array.isArray(data["__interrupt__"])
        ? { asked: (data["__interrupt__"] as Loose[]).map(question) }
        : values(data);
    case "checkpoints":
      return checkpoint(data);
    case "tasks":
      return task(data);
    case "debug":
      return {
        type: data["type"],
        step: data["step"],
        payload: debug(data["type"], data["payload"] as Loose),
      };
    case "messages":
      return message(data as unknown as [Loose, Loose]);
    default:
      return data;
  }
}

const debug = (type: unknown, data: Loose) => (type === "checkpoint" ? checkpoint(data) : task(data));

const question = ({ id, value }: Loose) => ({ id, value });

/** Empty members of messages may be present or absent. */
function values(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(values);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(
    ([key]) => key !== "name" && key !== "example" && key !== "usage_metadata",
  );
  return Object.fromEntries(entries.map(([key, member]) => [key, values(member)]));
}

function checkpoint({ values: state, metadata, next, tasks }: Loose): unknown {
  const { source, step, parents } = metadata as Loose;
  return {
    values: values(state),
    source,
    step,
    parents: parents ?? {},
    next,
    tasks: (tasks as Loose[]).map(planned),
  };
}

function planned({ id, name, path, interrupts, result, ...where }: Loose): unknown {
  const asked = (interrupts as Loose[]).map(question);
  const { checkpoint_ns } = (where["checkpoint"] ??
    (where["state"] as Loose | null)?.["configurable"] ??
    {}) as Loose;
  return { id, name, path: plannedPath(path), asked, result: values(result), checkpoint_ns };
}

/** Since 1.5 the path of a sent task ends with a boolean, which is internal to LangGraph. */
const plannedPath = (path: unknown): unknown =>
  (path as unknown[]).filter((part) => typeof part !== "boolean");

function task({ id, name, input, triggers, result, error, interrupts }: Loose): unknown {
  const asked = (interrupts as Loose[]).map(question);
  if (triggers !== undefined) return { id, name, input: values(input), triggers, asked };
  // A task that asks, or fails, has returned nothing. LangGraph shows an empty object for that.
  const nothing = asked.length > 0 || (error ?? null) !== null || result === undefined;
  return { id, name, result: nothing ? {} : values(result), asked };
}

function message([chunk, meta]: readonly [Loose, Loose]): unknown {
  const { content, type, id } = chunk;
  const {
    name,
    langgraph_node,
    langgraph_step,
    langgraph_checkpoint_ns,
    langgraph_triggers,
    langgraph_path,
  } = meta;
  return {
    content,
    type,
    id,
    name,
    langgraph_node,
    langgraph_step,
    langgraph_checkpoint_ns,
    langgraph_triggers,
    langgraph_path,
  };
}

/** The names of a run and of its starter, which differ between the two sides. */
const RUN = new Set(["run_id", "thread_id", "graph_id", "assistant_id", "created_by", "user_id"]);

/** One event of LangChain's `streamEvents`. */
export function normalEvent(told: unknown): unknown {
  const { event, name, run_id, tags, data, metadata } = plain(told) as Loose;
  const own = Object.entries(metadata as Loose).filter(([key]) => !RUN.has(key));
  return { event, name, run_id, tags, data: values(data), metadata: Object.fromEntries(own) };
}

/** A state as `getState` and the history show it. */
export function normalState(state: Loose): unknown {
  const {
    values: shown,
    next,
    tasks,
    metadata,
    config,
    parentConfig,
    checkpoint: place,
    parent_checkpoint,
  } = plain(state) as Loose;
  const id = (from: unknown) =>
    ((from as Loose | null)?.["configurable"] as Loose | undefined)?.["checkpoint_id"] ??
    (from as Loose | null)?.["checkpoint_id"] ??
    null;
  const { source, step, parents } = metadata as Loose;
  return {
    id: id(place ?? config),
    parent: id(parent_checkpoint ?? parentConfig),
    values: values(shown),
    next,
    source,
    step,
    parents: parents ?? {},
    tasks: (tasks as Loose[]).map(({ id: task, name, path, interrupts }) => ({
      task,
      name,
      path: plannedPath(path),
      asked: (interrupts as Loose[]).map(question),
    })),
  };
}

/**
 * Replaces ids by numbers in the order of their occurrence, so that both sides have the same ids in the same places.
 */
export function numbered(value: unknown): unknown {
  const known = new Map<string, string>();
  const name = (id: string) => {
    if (!known.has(id)) known.set(id, `#${known.size + 1}`);
    return known.get(id) as string;
  };
  const text = JSON.stringify(value, null, 1)
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, name)
    .replaceAll(/\b[0-9a-f]{32}\b/g, name);
  return JSON.parse(text) as unknown;
}
