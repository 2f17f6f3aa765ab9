import { multitaskStrategies, runOrigins } from "../model/run.ts";
import { type TSchema, Type } from "./typebox.ts";

/**
 * The schemas in this file describe the records in responses, for people and for client generators. The server does not validate responses
 * with them, but a test does.
 */

const uuid = Type.String({ format: "uuid" });
const time = Type.String({ format: "date-time" });
const object = Type.Record(Type.String(), Type.Unknown());
const any = Type.Unknown();
const orNull = <T extends TSchema>(type: T) => Type.Union([type, Type.Null()]);
const text = Type.String();

const interrupt = Type.Object({
  id: text,
  value: any,
  resumable: Type.Optional(Type.Boolean()),
  ns: Type.Optional(Type.Array(text)),
  when: Type.Optional(text),
});

const checkpoint = Type.Object({
  thread_id: uuid,
  checkpoint_ns: text,
  checkpoint_id: Type.Optional(orNull(text)),
  checkpoint_map: Type.Optional(orNull(object)),
});

const version = {
  assistant_id: uuid,
  graph_id: text,
  version: Type.Integer({ minimum: 1 }),
  name: text,
  description: orNull(text),
  config: object,
  context: object,
  metadata: object,
  created_at: time,
};

const count = Type.Integer({ minimum: 0 });
const slowestNode = Type.Object({ name: text, task_id: text, duration_ms: count });
const storedRows = Type.Object({ count, bytes: count });

const records = {
  Thread: Type.Object({
    thread_id: uuid,
    created_at: time,
    updated_at: time,
    state_updated_at: time,
    metadata: object,
    status: Type.Enum(["idle", "busy", "interrupted", "error"]),
    config: object,
    values: orNull(object),
    interrupts: Type.Record(text, Type.Array(interrupt)),
    error: Type.Optional(any),
    ttl: Type.Optional(orNull(object)),
  }),
  ThreadState: Type.Object({
    values: any,
    next: Type.Array(text),
    tasks: Type.Array(
      Type.Object({
        id: text,
        name: text,
        path: Type.Array(any),
        error: orNull(text),
        interrupts: Type.Array(interrupt),
        checkpoint: orNull(object),
        state: orNull(object),
        result: any,
      }),
    ),
    metadata: object,
    created_at: orNull(time),
    checkpoint: orNull(checkpoint),
    parent_checkpoint: orNull(checkpoint),
    interrupts: Type.Array(interrupt),
    checkpoint_id: orNull(text),
    parent_checkpoint_id: orNull(text),
  }),
  StoredSizes: Type.Object({
    thread_id: uuid,
    total_bytes: count,
    checkpoints: storedRows,
    channel_values: Type.Object({
      count,
      bytes: count,
      by_channel: Type.Record(text, Type.Object({ versions: count, bytes: count })),
    }),
    pending_writes: storedRows,
    runs: storedRows,
    events: storedRows,
    thread: storedRows,
  }),
  Run: Type.Object({
    run_id: uuid,
    thread_id: uuid,
    assistant_id: uuid,
    created_at: time,
    updated_at: time,
    metadata: object,
    status: Type.Enum(["pending", "running", "success", "error", "timeout", "interrupted"]),
    kwargs: object,
    multitask_strategy: Type.Enum(multitaskStrategies),
    queue_position: Type.Optional(Type.Integer({ minimum: 1 })),
    scheduled_for: Type.Optional(time),
    cancel_reason: Type.Optional(text),
    slowest_node: Type.Optional(slowestNode),
  }),
  FoundRun: Type.Object({
    run_id: uuid,
    thread_id: uuid,
    assistant_id: uuid,
    graph_id: text,
    created_at: time,
    updated_at: time,
    started_at: orNull(time),
    ended_at: orNull(time),
    metadata: object,
    status: Type.Enum(["pending", "running", "success", "error", "timeout", "interrupted"]),
    multitask_strategy: Type.Enum(multitaskStrategies),
    attempt: Type.Integer({ minimum: 0 }),
    origin: orNull(Type.Enum(runOrigins)),
    usage: Type.Array(
      Type.Object({
        models: Type.Array(text),
        input_tokens: Type.Number({ minimum: 0 }),
        output_tokens: Type.Number({ minimum: 0 }),
      }),
    ),
    slowest_node: orNull(slowestNode),
    error: orNull(Type.Object({ error: text, message: text })),
    is_latest: Type.Boolean(),
    paused_at: orNull(Type.Enum(["question", "breakpoint"])),
    resumed_by: orNull(uuid),
    scheduled_for: Type.Optional(time),
    cancel_reason: Type.Optional(text),
  }),
  AssistantVersion: Type.Object(version),
  Assistant: Type.Object({ ...version, updated_at: time }),
  Cron: Type.Object({
    cron_id: uuid,
    assistant_id: uuid,
    thread_id: orNull(uuid),
    on_run_completed: orNull(text),
    schedule: text,
    timezone: orNull(text),
    end_time: orNull(time),
    next_run_date: orNull(time),
    enabled: Type.Boolean(),
    payload: object,
    metadata: object,
    user_id: orNull(text),
    last_run: Type.Optional(
      Type.Object(
        {
          run_id: orNull(uuid),
          status: text,
          error: orNull(Type.Object({ error: text, message: text })),
          ended_at: time,
        },
        {
          description:
            "Heddle's own: how the last run ended that the cron started, also when it was deleted with its thread. `run_id` is null where a run could not be started",
        },
      ),
    ),
    created_at: time,
    updated_at: time,
  }),
  StoreItem: Type.Object({
    namespace: Type.Array(text),
    key: text,
    value: object,
    created_at: time,
    updated_at: time,
    ttl: Type.Optional(Type.Number()),
    expires_at: Type.Optional(time),
    score: Type.Optional(orNull(Type.Number())),
  }),
  Delivery: Type.Object({
    id: uuid,
    run_id: uuid,
    thread_id: uuid,
    url: text,
    status: Type.Enum(["pending", "dead"]),
    attempts: Type.Integer({ minimum: 0 }),
    created_at: time,
    next_attempt_at: orNull(time),
    expires_at: orNull(time),
    last_attempt_at: orNull(time),
    last_status: orNull(Type.Integer()),
    last_error: orNull(text),
  }),
  Error: Type.Object({
    detail: text,
    code: Type.Optional(text),
    errors: Type.Optional(Type.Array(Type.Object({ at: text, message: text }))),
  }),
};

/**
 * The schemas of responses, by name. Schemas whose names begin with `Selected` are for responses to requests that select fields: all of
 * their fields are optional.
 */
export const responseSchemas = {
  ...records,
  SelectedThread: Type.Partial(records.Thread),
  SelectedThreadState: Type.Object({
    ...Type.Partial(records.ThreadState).properties,
    list_lengths: Type.Optional(Type.Record(text, Type.Integer({ minimum: 1 }))),
  }),
  SelectedRun: Type.Partial(records.Run),
  SelectedAssistant: Type.Partial(records.Assistant),
  SelectedCron: Type.Partial(records.Cron),
};
