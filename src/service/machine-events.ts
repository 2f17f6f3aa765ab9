import { ServiceError } from "../model/errors.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { RunOrigin, RunRecord } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Engine } from "../ports/engine.ts";
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
  /** By type, or by a descriptor such as `order.*`. `schema`: a JSON Schema; null when none is known. */
  readonly events: readonly { readonly type: string; readonly schema: JsonObject | null }[];
  /** The machine's state value; null while it waits for no event. */
  readonly state: unknown;
  readonly interrupt_id: string | null;
}

interface EventOptions {
  readonly again?: IdempotencyKey | undefined;
  /** What the run finds in `configurable` besides. */
  readonly configurable?: JsonObject | undefined;
  /** What brought the event. Default: `http`. */
  readonly origin?: RunOrigin;
}

/** Events for the machine of a thread. */
export interface MachineEvents {
  /** The events that the machine can take now: none while a run is in progress. @throws ServiceError `thread.not_found` */
  possible(key: ThreadKey): Promise<PossibleEvents>;
  /**
   * Sends an event. Resolves, when it is stored, with the run that takes it once the runs before it have ended. When there are none, an event
   * that the machine does not handle is refused, and nothing is stored; else it is checked when its turn comes.
   * @throws ServiceError `validation.failed`, `resume.invalid` when the thread has no machine or waits for no event; and as {@link Runs.start}
   */
  send(key: ThreadKey, event: SentEvent, options?: EventOptions): Promise<RunRecord>;
}

interface Deps {
  readonly engine: Engine;
  readonly threads: Pick<Threads, "record">;
  readonly states: Pick<ThreadStates, "pendingInterrupts">;
  readonly runs: Pick<Runs, "start">;
}

export function createMachineEvents({ engine, threads, states, runs }: Deps): MachineEvents {
  const isMachine = (graph: unknown) => typeof graph === "string" && engine.takesEvents?.(graph) === true;

  return {
    async possible(key) {
      const { active, metadata } = await threads.record(key);
      const waits = active === null && isMachine(metadata["graph_id"]);
      const [asked] = waits ? await states.pendingInterrupts(key) : [];
      if (asked === undefined || !isObject(asked.value))
        return { events: [], state: null, interrupt_id: null };
      const { state = null, events } = asked.value;
      const types = Array.isArray(events) ? (events as readonly string[]) : [];
      return {
        events: types.map((type) => ({ type, schema: schemaOf(type, asked.response_schema) })),
        state,
        interrupt_id: asked.id,
      };
    },

    async send(key, event, { again, configurable, origin } = {}) {
      const { assistant_id, graph_id } = (await threads.record(key)).metadata;
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
      };
      try {
        return await runs.start(key, withConfigurable(request, configurable), { again, event: {} });
      } catch (cause) {
        throw inTermsOfEvents(cause);
      }
    },
  };
}

/** The schema of all possible events, narrowed to one of them. */
function schemaOf(type: string, schema: JsonObject | null): JsonObject | null {
  if (schema === null || type.endsWith("*")) return schema;
  const { properties } = schema;
  return { ...schema, properties: { ...(isObject(properties) && properties), type: { const: type } } };
}

/** A refusal of the run that was to take an event, as one of the event. */
function inTermsOfEvents(cause: unknown): unknown {
  if (!(cause instanceof ServiceError)) return cause;
  if (cause.code === "resume.invalid")
    return new ServiceError(cause.code, "The machine of this thread waits for no event", { cause });
  const [field] = cause.fields;
  if (field?.at === "command") {
    const message = field.message.replace("command.resume", "event");
    return new ServiceError(cause.code, message, { cause, fields: [{ at: "event", message }] });
  }
  if (field?.at !== "command.resume") return cause;
  const { message } = field;
  return new ServiceError(cause.code, `type ${message}`, { cause, fields: [{ at: "type", message }] });
}
