import type { AssistantRecord } from "../model/assistant.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type {
  Breakpoints,
  Command,
  Durability,
  MultitaskStrategy,
  RunKwargs,
  StreamMode,
} from "../model/run.ts";
import type { RunDraft } from "../../actors/port.ts";
import type { ThreadRecord } from "../model/thread.ts";
import { storable, storableObject } from "./storable.ts";

/** What a client asks for when it starts a run: the fields of the wire that are served, checked for their types. */
export interface RunRequest {
  /** An assistant's id, or the name of a graph. */
  readonly assistant_id: string;
  readonly input?: unknown;
  readonly command?: Command;
  readonly metadata?: JsonObject;
  readonly config?: JsonObject;
  readonly context?: JsonObject;
  readonly stream_mode?: StreamMode | readonly StreamMode[];
  readonly stream_subgraphs?: boolean;
  readonly stream_resumable?: boolean;
  readonly interrupt_before?: Breakpoints;
  readonly interrupt_after?: Breakpoints;
  readonly multitask_strategy?: MultitaskStrategy;
  readonly durability?: Durability;
  /** The older name of a choice of durability: false is `exit`. */
  readonly checkpoint_during?: boolean;
}

const VALUES: readonly StreamMode[] = ["values"];

/** All that is stored of a request. The thread's own config is left out: a second assistant must not inherit the first one's. */
export function draftOf(
  run_id: string,
  request: RunRequest,
  assistant: AssistantRecord,
  thread: ThreadRecord,
): RunDraft {
  const { assistant_id, graph_id } = assistant;
  const metadata = {
    ...assistant.metadata,
    ...thread.metadata,
    graph_id,
    assistant_id,
    ...storableObject(request.metadata, "metadata"),
  };
  const config = storableObject(request.config, "config");
  const ids = { run_id, thread_id: thread.thread_id, graph_id, assistant_id };
  const kwargs: RunKwargs = {
    input: storable(request.input ?? null, "input"),
    command: (storable(request.command ?? null, "command") as Command | null) ?? null,
    config: {
      ...assistant.config,
      ...config,
      configurable: {
        user_id: "",
        checkpoint_id: null,
        ...member(assistant.config, "configurable"),
        ...member(config, "configurable"),
        ...ids,
      },
      metadata: {
        created_by: "user",
        ...member(assistant.config, "metadata"),
        ...member(config, "metadata"),
        ...metadata,
      },
    },
    context: { ...assistant.context, ...storableObject(request.context, "context") },
    webhook: null,
    temporary: false,
    stream_mode: modesOf(request.stream_mode),
    feedback_keys: null,
    interrupt_before: request.interrupt_before ?? null,
    interrupt_after: request.interrupt_after ?? null,
    subgraphs: request.stream_subgraphs ?? false,
    resumable: request.stream_resumable ?? false,
    durability: request.durability ?? (request.checkpoint_during === false ? "exit" : "async"),
  };
  const multitask_strategy = request.multitask_strategy ?? "reject";
  return { run_id, assistant_id, graph_id, metadata, kwargs, multitask_strategy };
}

function modesOf(modes: RunRequest["stream_mode"]): readonly StreamMode[] {
  if (modes === undefined || modes.length === 0) return VALUES;
  return typeof modes === "string" ? [modes] : modes;
}

function member(object: JsonObject, name: string): JsonObject {
  const value = object[name];
  return isObject(value) ? value : {};
}
