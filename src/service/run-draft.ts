import type { AssistantRecord } from "../model/assistant.ts";
import { withUser } from "../model/auth-user.ts";
import { EMPTY_OBJECT, isObject, type JsonObject } from "../model/json.ts";
import type { Permits } from "../model/permitted-resources.ts";
import type {
  Breakpoints,
  Command,
  Durability,
  MultitaskStrategy,
  RunKwargs,
  RunOrigin,
  StreamMode,
} from "../model/run.ts";
import { LATEST_CHECKPOINT, type StartCheckpoint } from "../model/start-checkpoint.ts";
import type { RunDraft } from "../../actors/thread-system-interface.ts";
import type { NewThreadValues } from "../model/thread.ts";
import { requireStorable, requireStorableObject } from "./storable-values.ts";

/** The body of a request to start a run: the supported fields, with their types checked. */
export interface RunRequest {
  /** An assistant's id, or the name of a graph. */
  readonly assistant_id: string;
  readonly input?: unknown;
  readonly command?: Command;
  readonly metadata?: JsonObject;
  readonly config?: JsonObject;
  readonly context?: JsonObject;
  /**
   * The checkpoint from which the run starts; by default the latest. `checkpoint` takes precedence over `checkpoint_id`, and both over the
   * checkpoint in `config`.
   */
  readonly checkpoint?: {
    readonly checkpoint_id?: string | null;
    /**
     * A subgraph's namespace. `checkpoint_map` names the checkpoints of the graphs that contain the subgraph; without it, they are looked
     * up.
     */
    readonly checkpoint_ns?: string | null;
    readonly checkpoint_map?: JsonObject | null;
  };
  readonly checkpoint_id?: string;
  readonly stream_mode?: StreamMode | readonly StreamMode[];
  readonly stream_subgraphs?: boolean;
  readonly stream_resumable?: boolean;
  readonly interrupt_before?: Breakpoints;
  readonly interrupt_after?: Breakpoints;
  readonly multitask_strategy?: MultitaskStrategy;
  readonly durability?: Durability;
  /** The older form of `durability`: false means `exit`. */
  readonly checkpoint_during?: boolean;
  /** A URL, or a path on this server, that is notified when the run ends. The caller has checked that the webhook is allowed. */
  readonly webhook?: string;
  /** Names that clients use for feedback on the run. They are only stored with the run. */
  readonly feedback_keys?: string | readonly string[];
  /** When the thread does not exist: `reject` (default) throws `thread.not_found`, `create` creates it together with the run. */
  readonly if_not_exists?: "reject" | "create";
  /**
   * For a run without a thread: whether the thread that was made for it is deleted when the run ends
   * (default), or kept. The types of LangGraph's SDK use the names `complete` for `delete`, and `continue`
   * for `keep`.
   */
  readonly on_completion?: "delete" | "keep" | "complete" | "continue";
  /** Seconds before the run may start. */
  readonly after_seconds?: number;
  /** Seconds that each attempt of the run may take. If an attempt takes longer, the run ends with the status `timeout`. */
  readonly timeout_seconds?: number;
  /** True: refuses a resume when nothing waits for an answer. Graphs made by `graph()` always refuse such a resume. */
  readonly strict_resume?: boolean;
  /** The project and session in LangSmith where the client traces the run. They are only stored with the run's config. */
  readonly langsmith_tracer?: { readonly project_name?: string | null; readonly example_id?: string | null };
  /** How the request arrived; not a field of its body. Default: `http`. */
  readonly origin?: RunOrigin | undefined;
}

/** Adds members to the `configurable` of a request. They replace members of the request's `configurable` with the same names. */
export function withConfigurable<T extends Pick<RunRequest, "config">>(
  request: T,
  members: JsonObject | undefined,
): T {
  if (members === undefined) return request;
  const { config = EMPTY_OBJECT } = request;
  return {
    ...request,
    config: { ...config, configurable: { ...member(config, "configurable"), ...members } },
  };
}

/** The user who starts a new run, with the run's id, which the rules of the project have already seen. */
export interface NewRunUser {
  readonly run_id: string;
  /** The user as it is stored with the run. */
  readonly user: JsonObject;
  /** Returns whether the run may use an assistant with this metadata; absent: it may use any. */
  readonly mayUse?: Permits | undefined;
}

/**
 * Puts the user into the `configurable` of a run, where graphs look for the user. If `user` is null, the run has no user, and a user that
 * the client has put there is removed.
 */
export function withRunUser(draft: RunDraft, user: JsonObject | null): RunDraft {
  const { config } = draft.kwargs;
  const configurable = withUser(config.configurable, user);
  return { ...draft, kwargs: { ...draft.kwargs, config: { ...config, configurable } } };
}

/** The part of a thread that a run's draft depends on. The thread may not exist yet. */
export interface RunThread {
  readonly thread_id: string;
  readonly metadata: JsonObject;
  /** How to create the thread; absent when it exists. */
  readonly create?: NewThreadValues;
}

const VALUES: readonly StreamMode[] = ["values"];

/**
 * Converts a request to the form in which its run is stored. The config in the thread's record is not merged into the run's config, because
 * the thread's config may come from another assistant.
 */
export function runDraftOf(
  run_id: string,
  request: RunRequest,
  assistant: AssistantRecord,
  place: RunThread,
  start: StartCheckpoint = LATEST_CHECKPOINT,
): RunDraft {
  const { assistant_id, graph_id } = assistant;
  const metadata = {
    ...EMPTY_OBJECT,
    ...assistant.metadata,
    ...place.metadata,
    graph_id,
    assistant_id,
    ...requireStorableObject(request.metadata, "metadata"),
  };
  const config = unplaced(requireStorableObject(request.config, "config"));
  const kwargs: RunKwargs = {
    input: requireStorable(request.input ?? null, "input"),
    command: (requireStorable(request.command ?? null, "command") as Command | null) ?? null,
    config: {
      ...EMPTY_OBJECT,
      ...assistant.config,
      ...config,
      configurable: {
        user_id: "",
        ...member(assistant.config, "configurable"),
        ...member(config, "configurable"),
        ...(request.langsmith_tracer && traced(request.langsmith_tracer)),
        ...start,
        run_id,
        thread_id: place.thread_id,
        graph_id,
        assistant_id,
      },
      metadata: {
        created_by: "user",
        ...member(assistant.config, "metadata"),
        ...member(config, "metadata"),
        ...metadata,
      },
    },
    context: { ...EMPTY_OBJECT, ...assistant.context, ...requireStorableObject(request.context, "context") },
    webhook: request.webhook ?? null,
    temporary: place.create?.temporary !== undefined,
    stream_mode: modesOf(request.stream_mode),
    feedback_keys: keysOf(request.feedback_keys),
    interrupt_before: request.interrupt_before ?? null,
    interrupt_after: request.interrupt_after ?? null,
    subgraphs: request.stream_subgraphs ?? false,
    resumable: request.stream_resumable ?? false,
    durability: request.durability ?? (request.checkpoint_during === false ? "exit" : "async"),
    ...(request.timeout_seconds !== undefined && { timeout_seconds: request.timeout_seconds }),
    ...(request.strict_resume === true && { strict_resume: true as const }),
  };
  const multitask_strategy = request.multitask_strategy ?? "reject";
  const shared = sharedConfig(assistant.config, config);
  return {
    run_id,
    assistant_id,
    graph_id,
    metadata,
    kwargs,
    multitask_strategy,
    origin: request.origin ?? "http",
    ...(shared && { config: shared }),
    ...(place.create && { create: place.create }),
    ...(request.after_seconds && { delay: Math.ceil(request.after_seconds * 1_000) }),
  };
}

/**
 * The configuration that the run's admission adds to the thread's record: the configuration of the run's assistant, with the run's own
 * configuration on top. Undefined if both are empty, which is true for most runs.
 */
function sharedConfig(assistant: JsonObject, run: JsonObject): JsonObject | undefined {
  if (isEmpty(assistant) && isEmpty(run)) return undefined;
  const config = { ...assistant, ...run };
  const configurable = { ...member(assistant, "configurable"), ...member(run, "configurable") };
  return Object.hasOwn(config, "configurable") ? { ...config, configurable } : config;
}

function isEmpty(object: JsonObject): boolean {
  for (const _ in object) return false;
  return true;
}

const PLACE = ["checkpoint_id", "checkpoint_ns", "checkpoint_map"];

/** Removes the members that name the run's start checkpoint, because they belong to this run alone. */
function unplaced(config: JsonObject): JsonObject {
  const { configurable } = config;
  if (!isObject(configurable) || !PLACE.some((name) => Object.hasOwn(configurable, name))) return config;
  const { checkpoint_id: _id, checkpoint_ns: _ns, checkpoint_map: _map, ...rest } = configurable;
  return { ...config, configurable: rest };
}

function traced({ project_name, example_id }: NonNullable<RunRequest["langsmith_tracer"]>): JsonObject {
  return {
    ...(isGiven(project_name) && { langsmith_project: project_name }),
    ...(isGiven(example_id) && { langsmith_example_id: example_id }),
  };
}

const isGiven = (value: unknown) => value !== undefined && value !== null;

function keysOf(keys: RunRequest["feedback_keys"]): readonly string[] | null {
  if (keys === undefined || keys.length === 0) return null;
  return typeof keys === "string" ? [keys] : keys;
}

function modesOf(modes: RunRequest["stream_mode"]): readonly StreamMode[] {
  if (modes === undefined || modes.length === 0) return VALUES;
  return typeof modes === "string" ? [modes] : modes;
}

function member(object: JsonObject, name: string): JsonObject {
  const value = object[name];
  return isObject(value) ? value : EMPTY_OBJECT;
}
