import { ServiceError } from "../model/errors.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import { extractSchema } from "../graph/json-schema-conversion.ts";
import type { RunOrigin, RunRecord } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Engine } from "../ports/engine.ts";
import type { Journal } from "../ports/journal.ts";
import type { IdempotencyKey } from "./idempotency.ts";
import { type RunRequest, withConfigurable } from "./run-draft.ts";
import type { Runs } from "./runs.ts";
import type { ThreadStates } from "./thread-states.ts";
import type { Threads } from "./threads.ts";

/** An event of a machine, as a client sends it. */
interface SentEvent extends JsonObject {
  readonly type: string;
}

interface PossibleEvents {
  /**
   * The events that the machine can accept. `type`: an event's type, or a descriptor such as `order.*`. `schema`: a
   * JSON Schema; null when none is known.
   */
  readonly events: readonly { readonly type: string; readonly schema: JsonObject | null }[];
  /** The state value of the machine; null while the machine accepts no event. */
  readonly state: unknown;
  readonly interrupt_id: string | null;
}

interface EventOptions {
  readonly again?: IdempotencyKey | undefined;
  /** Further members of the run's `configurable`. */
  readonly configurable?: JsonObject | undefined;
  /** Metadata of the event's run. */
  readonly metadata?: JsonObject | undefined;
  /** How the event arrived. Default: `http`. */
  readonly origin?: RunOrigin;
}

/** Events for the machine of a thread. */
export interface MachineEvents {
  /**
   * The events that the machine can accept now. While a run is in progress, these are the events that the machine
   * accepts while its invoked actors are running.
   * @throws ServiceError `thread.not_found`
   */
  possible(key: ThreadKey): Promise<PossibleEvents>;
  /**
   * Sends an event to the machine, in a run of its own. Resolves with this run when it is stored. The run sends the event when earlier runs
   * have ended, unless the machine processes the event before that, while its invoked actors are running.
   *
   * - If no other run is in progress or queued, an event that the machine does not accept now is refused, and nothing is stored.
   * - If another run is, only an event that the machine accepts in none of its states is refused. Any other event is checked when its run
   *   starts.
   * - In both cases, the event's data are validated now if the machine declares a schema for them, and what the schema returns is stored
   *   with the event.
   * @throws ServiceError `validation.failed`, naming the wrong members; `resume.invalid` when the thread has no machine or waits for no
   *   event; and as {@link Runs.start}
   */
  send(key: ThreadKey, event: SentEvent, options?: EventOptions): Promise<RunRecord>;
}

interface Deps {
  readonly engine: Engine;
  readonly journal: Pick<Journal, "checkpoint" | "sharedValues">;
  readonly threads: Pick<Threads, "record">;
  readonly states: Pick<ThreadStates, "pendingInterrupts">;
  readonly runs: Pick<Runs, "start">;
}

/** The path of the event in the request of its run. */
const RESUME = "command.resume";

const NONE: PossibleEvents = { events: [], state: null, interrupt_id: null };

const NONE_AT_WORK = { state: null, events: [], schema: null };

const ANY_EVENT: JsonObject = {
  type: "object",
  required: ["type"],
  properties: { type: { type: "string" } },
};

export function createMachineEvents({ engine, journal, threads, states, runs }: Deps): MachineEvents {
  const isMachine = (graph: unknown): graph is string =>
    typeof graph === "string" && engine.takesEvents?.(graph) === true;

  async function atWork(key: ThreadKey, graph: string, id: string | null): Promise<PossibleEvents> {
    const checkpoint = id === null ? undefined : await journal.checkpoint(key, "", id);
    if (checkpoint === undefined) return NONE;
    const values = await journal.sharedValues(key, checkpoint);
    const { state, events, schema } = engine.acceptedEvents?.(graph, values) ?? NONE_AT_WORK;
    return { ...NONE, state, events: withSchemas(events, schema ?? ANY_EVENT) };
  }

  return {
    async possible(key) {
      const { active, checkpoint, metadata } = await threads.record(key);
      const { graph_id } = metadata;
      if (!isMachine(graph_id)) return NONE;
      if (active !== null) return atWork(key, graph_id, checkpoint);
      const [asked] = await states.pendingInterrupts(key);
      if (asked === undefined || !isObject(asked.value)) return NONE;
      const { state = null, events } = asked.value;
      const types = Array.isArray(events) ? (events as readonly string[]) : [];
      return {
        events: withSchemas(types, asked.response_schema),
        state,
        interrupt_id: asked.id,
      };
    },

    async send(key, event, { again, configurable, metadata: given, origin } = {}) {
      const { metadata } = await threads.record(key);
      const { assistant_id, graph_id } = metadata;
      if (typeof assistant_id !== "string")
        throw new ServiceError(
          "resume.invalid",
          "No run has been started on this thread: no machine takes the event",
        );
      if (!isMachine(graph_id))
        throw new ServiceError(
          "resume.invalid",
          `The graph "${String(graph_id)}" of this thread is no machine: it takes no events`,
        );
      const request: RunRequest = {
        assistant_id,
        command: { resume: event },
        multitask_strategy: "enqueue",
        origin,
        ...(given !== undefined && { metadata: given }),
      };
      try {
        return await runs.start(key, withConfigurable(request, configurable), { again, event: {} });
      } catch (cause) {
        throw inTermsOfEvents(cause, event);
      }
    },
  };
}

/**
 * Pairs each event type with its schema. If `schema` has an `anyOf` with one entry for each type, the machine declares schemas, and the
 * entries are in the order of `types`.
 */
function withSchemas(types: readonly string[], schema: JsonObject | null): PossibleEvents["events"] {
  const { anyOf } = schema ?? {};
  const each = Array.isArray(anyOf) && anyOf.length === types.length ? (anyOf as readonly unknown[]) : [];
  return types.map((type, index) => {
    const own = each[index];
    return { type, schema: isObject(own) ? extractSchema(own, `/anyOf/${index}`) : schemaOf(type, schema) };
  });
}

/** Narrows the schema of all possible events to the schema of one event type. */
function schemaOf(type: string, schema: JsonObject | null): JsonObject | null {
  if (schema === null || type.endsWith("*")) return schema;
  const { properties } = schema;
  return { ...schema, properties: { ...(isObject(properties) && properties), type: { const: type } } };
}

/** Rewrites the error of a run that should have processed an event as an error about the event itself. */
function inTermsOfEvents(cause: unknown, { type }: SentEvent): unknown {
  if (!(cause instanceof ServiceError)) return cause;
  if (cause.code === "graph.invalid") {
    const message = cause.message.replace(/^command\.resume(?=: )/, () => `event ${JSON.stringify(type)}`);
    return new ServiceError(cause.code, message, { cause });
  }
  if (cause.code === "resume.invalid")
    return new ServiceError(cause.code, "The machine of this thread waits for no event", { cause });
  const [field] = cause.fields;
  if (field?.at === "command") {
    const message = field.message.replace("command.resume", "event");
    return new ServiceError(cause.code, message, { cause, fields: [{ at: "event", message }] });
  }
  if (field?.at.startsWith(RESUME) !== true) return cause;
  // Without a colon after the path, the error is the machine's refusal of the event's type. Errors of a schema have the colon, even if they
  // are about the whole event.
  if (field.at === RESUME && !cause.message.startsWith(`${RESUME}: `))
    return typeRefused(field.message, cause);
  const fields = cause.fields.map(({ at, message }) => ({ at: pathInEvent(at), message }));
  const separator = cause.code === "value.unstorable" ? " " : ": ";
  const message = fields.map((one) => `${one.at}${separator}${one.message}`).join("; ");
  return new ServiceError(cause.code, message, { cause, fields });
}

/** The body of the request is the event, so the paths of its members begin with their names. The path of the whole event is `event`. */
const pathInEvent = (at: string) =>
  at.startsWith(`${RESUME}.`) ? at.slice(RESUME.length + 1) : at.replace(RESUME, "event");

const typeRefused = (message: string, cause?: unknown) =>
  new ServiceError("validation.failed", `type ${message}`, { cause, fields: [{ at: "type", message }] });
