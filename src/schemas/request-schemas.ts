import {
  type CancelAction,
  multitaskStrategies,
  runOrigins,
  type RunStatus,
  streamModes,
} from "../model/run.ts";
import { assistantOrders } from "../service/assistant-search.ts";
import { threadOrders } from "../model/thread-search.ts";
import { MAX_TTL_MINUTES, ttlStrategies } from "../model/thread.ts";
import { metadataFilterSchema } from "./metadata-filter-schema.ts";
import { type TSchema, Type } from "./typebox.ts";
import { compileBodySchema } from "./body-schema.ts";

const ifExists = Type.Enum(["raise", "do_nothing"]);
/** The actions with which a run can be cancelled. */
export const cancelActions = ["interrupt", "rollback"] as const satisfies CancelAction[];
const object = Type.Free();
const breakpoints = Type.Union([Type.Literal("*"), Type.Array(Type.String(), { maxItems: 1000 })]);
const streamMode = Type.Enum(streamModes);
const send = Type.Object({ node: Type.String(), input: Type.Unknown() });
const target = Type.Union([Type.String(), send]);

const feedbackKey = Type.String({ maxLength: 1000 });
const text = Type.Union([Type.String(), Type.Null()]);
const checkpointId = Type.Union([Type.String({ format: "uuid" }), Type.Null()]);

/**
 * The smallest, largest and default number of records in a page of results. {@link PAGE_OFFSETS}: the same for the number of records before
 * the page.
 */
export const PAGE_LIMITS = { least: 1, most: 1000, initial: 10 } as const;
export const PAGE_OFFSETS = { least: 0, most: 1_000_000_000, initial: 0 } as const;
/** The smallest and largest `list_limit`, the number of elements of each list in a state's values. By default, lists are returned whole. */
export const LIST_LIMIT_RANGE = { least: 1, most: 1_000_000_000, initial: undefined } as const;

const orNull = <T extends TSchema>(type: T) => Type.Optional(Type.Union([type, Type.Null()]));

/** Members that name a checkpoint in a thread's history. A `thread_id` beside them is accepted and ignored. */
const place = {
  checkpoint_id: Type.Optional(checkpointId),
  checkpoint_ns: orNull(Type.String({ maxLength: 10_000 })),
  checkpoint_map: orNull(Type.Map(Type.Union([checkpointId, Type.Literal("")]), 1000)),
};
const checkpoint = Type.Object(place);

/** The configuration of a run or an assistant. Members that are not listed here are stored as they are. */
const config = Type.Object({
  tags: Type.Optional(Type.Array(Type.String(), { maxItems: 1000 })),
  recursion_limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000 })),
  configurable: Type.Optional(Type.Object(place)),
});

const command = Type.Object({
  resume: Type.Optional(Type.Unknown()),
  update: Type.Optional(Type.Unknown()),
  goto: Type.Optional(Type.Union([Type.String(), send, Type.Array(target, { maxItems: 1000 }), Type.Null()])),
});

/** The name of the node that counts as the author of a state update. */
const asNode = Type.String({ maxLength: 128 });
/** The largest number of supersteps in a request that creates a thread, and of updates in one superstep. */
const MAX_STEPS = 1000;
/** The lifetime of a thread in minutes. In a request, it is a plain number, or the member `ttl` of an object. */
const minutes = Type.Number({ exclusiveMinimum: 0, maximum: MAX_TTL_MINUTES });
const ttl = Type.Union([
  minutes,
  Type.Object({ ttl: minutes, strategy: Type.Optional(Type.Enum([...ttlStrategies])) }),
]);

export const threadCreateSchema = compileBodySchema(
  Type.Object({
    thread_id: Type.Optional(Type.String({ format: "uuid" })),
    metadata: Type.Optional(object),
    if_exists: Type.Optional(ifExists),
    ttl: Type.Optional(ttl),
    supersteps: Type.Optional(
      Type.Array(
        Type.Object({
          updates: Type.Array(
            Type.Object({
              values: Type.Optional(Type.Unknown()),
              command: orNull(command),
              as_node: orNull(asNode),
            }),
            { minItems: 1, maxItems: MAX_STEPS },
          ),
        }),
        { maxItems: MAX_STEPS },
      ),
    ),
  }),
);

export const stateUpdateSchema = compileBodySchema(
  Type.Object({
    values: Type.Optional(Type.Unknown()),
    as_node: Type.Optional(asNode),
    checkpoint: Type.Optional(checkpoint),
    checkpoint_id: Type.Optional(Type.String({ format: "uuid" })),
    // A field that only Heddle has. If true, an update of a checkpoint that is not the latest is refused. Otherwise such an update begins a
    // branch, as on LangGraph's own server.
    require_latest: Type.Optional(Type.Boolean()),
  }),
);

const select = Type.Optional(Type.Array(Type.String({ maxLength: 1000 }), { maxItems: 1000 }));

export const stateReadSchema = compileBodySchema(
  Type.Object({
    checkpoint: Type.Optional(checkpoint),
    checkpoint_id: Type.Optional(Type.String({ format: "uuid" })),
    // Some clients send a string instead of a boolean.
    subgraphs: Type.Optional(Type.Union([Type.Boolean(), Type.Enum(["true", "false", ""])])),
    select,
    list_limit: Type.Optional(
      Type.Integer({ minimum: LIST_LIMIT_RANGE.least, maximum: LIST_LIMIT_RANGE.most }),
    ),
  }),
);

export const historyReadSchema = compileBodySchema(
  Type.Object({
    limit: Type.Optional(Type.Integer({ minimum: PAGE_LIMITS.least, maximum: PAGE_LIMITS.most })),
    // The id of a checkpoint, a checkpoint object, or a config that contains a checkpoint id.
    before: Type.Optional(
      Type.Union([
        Type.String({ format: "uuid" }),
        Type.Object({
          checkpoint_id: Type.Optional(checkpointId),
          configurable: Type.Optional(Type.Object({ checkpoint_id: Type.Optional(checkpointId) })),
        }),
      ]),
    ),
    metadata: Type.Optional(metadataFilterSchema),
    checkpoint: Type.Optional(checkpoint),
    checkpoint_id: Type.Optional(Type.String({ format: "uuid" })),
    select,
  }),
);

export const threadUpdateSchema = compileBodySchema(
  Type.Object({ metadata: Type.Optional(object), ttl: Type.Optional(ttl) }),
);

const threadFilter = {
  metadata: Type.Optional(metadataFilterSchema),
  values: Type.Optional(metadataFilterSchema),
  status: Type.Optional(Type.Enum(["idle", "busy", "interrupted", "error"])),
};

const threadFields = [
  "thread_id",
  "created_at",
  "updated_at",
  "state_updated_at",
  "metadata",
  "config",
  "context",
  "status",
  "values",
  "interrupts",
  "error",
] as const;

export const threadSearchSchema = compileBodySchema(
  Type.Object({
    ...threadFilter,
    ids: Type.Optional(Type.Array(Type.String({ format: "uuid" }), { maxItems: PAGE_LIMITS.most })),
    limit: Type.Optional(Type.Integer({ minimum: PAGE_LIMITS.least, maximum: PAGE_LIMITS.most })),
    offset: Type.Optional(Type.Integer({ minimum: PAGE_OFFSETS.least, maximum: PAGE_OFFSETS.most })),
    sort_by: Type.Optional(Type.Enum([...threadOrders])),
    sort_order: Type.Optional(Type.Enum(["asc", "desc"])),
    select: Type.Optional(Type.Array(Type.Enum(threadFields), { maxItems: 100 })),
    extract: Type.Optional(Type.Map(Type.String({ maxLength: 1000 }), 1000)),
  }),
);

export const threadCountSchema = compileBodySchema(Type.Object(threadFilter));

export const threadPruneSchema = compileBodySchema(
  Type.Object({
    thread_ids: Type.Array(Type.String({ format: "uuid" }), { maxItems: PAGE_LIMITS.most }),
    strategy: Type.Optional(Type.Enum([...ttlStrategies])),
  }),
);

/** The run statuses for which a list or a search can be filtered. */
export const RUN_FILTER_STATUSES = [
  "pending",
  "running",
  "success",
  "error",
  "timeout",
  "interrupted",
] as const satisfies RunStatus[];
const moment = Type.String({ maxLength: 100 });

export const runSearchSchema = compileBodySchema(
  Type.Object({
    status: Type.Optional(Type.Enum([...RUN_FILTER_STATUSES])),
    assistant_id: Type.Optional(Type.String({ format: "uuid" })),
    graph_id: Type.Optional(Type.String({ maxLength: 1000 })),
    thread_id: Type.Optional(Type.String({ format: "uuid" })),
    origin: Type.Optional(Type.Enum([...runOrigins])),
    paused: Type.Optional(Type.Boolean()),
    metadata: Type.Optional(metadataFilterSchema),
    without_metadata: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 1000 }), { maxItems: 100 }),
    ),
    created_after: Type.Optional(moment),
    created_before: Type.Optional(moment),
    error: Type.Optional(Type.String({ minLength: 1, maxLength: 1000 })),
    limit: Type.Optional(Type.Integer({ minimum: PAGE_LIMITS.least, maximum: PAGE_LIMITS.most })),
    cursor: Type.Optional(Type.String({ maxLength: 1000 })),
    sort_by: Type.Optional(Type.Literal("created_at")),
    sort_order: Type.Optional(Type.Enum(["asc", "desc"])),
  }),
);

export const runCreateSchema = compileBodySchema(
  Type.Object({
    assistant_id: Type.String(),
    input: Type.Optional(Type.Unknown()),
    command: Type.Optional(command),
    metadata: Type.Optional(object),
    config: Type.Optional(config),
    context: Type.Optional(object),
    checkpoint: Type.Optional(checkpoint),
    checkpoint_id: Type.Optional(Type.String({ format: "uuid" })),
    stream_mode: Type.Optional(Type.Union([streamMode, Type.Array(streamMode, { maxItems: 100 })])),
    stream_subgraphs: Type.Optional(Type.Boolean()),
    stream_resumable: Type.Optional(Type.Boolean()),
    interrupt_before: Type.Optional(breakpoints),
    interrupt_after: Type.Optional(breakpoints),
    multitask_strategy: Type.Optional(Type.Enum(multitaskStrategies)),
    on_disconnect: Type.Optional(Type.Enum(["cancel", "continue"])),
    on_completion: Type.Optional(Type.Enum(["delete", "keep", "complete", "continue"])),
    if_not_exists: Type.Optional(Type.Enum(["reject", "create"])),
    feedback_keys: Type.Optional(Type.Union([feedbackKey, Type.Array(feedbackKey, { maxItems: 100 })])),
    durability: Type.Optional(Type.Enum(["sync", "async", "exit"])),
    checkpoint_during: Type.Optional(Type.Boolean()),
    webhook: Type.Optional(Type.String()),
    langsmith_tracer: Type.Optional(
      Type.Object({ project_name: Type.Optional(text), example_id: Type.Optional(text) }),
    ),
    // At most 367 days (a leap year and a day): a longer delay is almost certainly a mistake.
    after_seconds: Type.Optional(Type.Number({ minimum: 0, maximum: 31_708_800 })),
    timeout_seconds: Type.Optional(Type.Number({ minimum: 0.001, maximum: 31_708_800 })),
    // If true, a `resume` is refused when no interrupt is pending. Graphs made by `graph()` always refuse such a `resume`.
    strict_resume: Type.Optional(Type.Boolean()),
  }),
);

/** An event for a thread's state machine. Which members it has besides `type` depends on the machine. */
export const machineEventSchema = compileBodySchema(Type.Object({ type: Type.String() }));

export const runCancelSchema = compileBodySchema(
  Type.Object({
    run_id: Type.Optional(Type.String({ format: "uuid" })),
    action: Type.Optional(Type.Enum(cancelActions)),
    reason: Type.Optional(Type.String({ maxLength: 200 })),
    wait: Type.Optional(Type.Boolean()),
  }),
);

export const runsCancelSchema = compileBodySchema(
  Type.Object({
    thread_id: Type.Optional(Type.String({ format: "uuid" })),
    run_ids: Type.Optional(Type.Array(Type.String({ format: "uuid" }), { minItems: 1, maxItems: 1000 })),
    status: Type.Optional(Type.Enum(["pending", "running", "all"])),
  }),
);

export const assistantCreateSchema = compileBodySchema(
  Type.Object({
    graph_id: Type.String(),
    assistant_id: Type.Optional(Type.String({ format: "uuid" })),
    name: Type.Optional(Type.String({ maxLength: 1000 })),
    description: Type.Optional(Type.String({ maxLength: 100_000 })),
    config: Type.Optional(config),
    context: Type.Optional(object),
    metadata: Type.Optional(object),
    if_exists: Type.Optional(ifExists),
  }),
);

export const assistantUpdateSchema = compileBodySchema(
  Type.Object({
    graph_id: Type.Optional(Type.String()),
    name: Type.Optional(Type.String({ maxLength: 1000 })),
    description: Type.Optional(Type.String({ maxLength: 100_000 })),
    config: Type.Optional(config),
    context: Type.Optional(object),
    metadata: Type.Optional(object),
  }),
);

export const assistantVersionsSchema = compileBodySchema(
  Type.Object({
    metadata: Type.Optional(metadataFilterSchema),
    limit: Type.Optional(Type.Integer({ minimum: PAGE_LIMITS.least, maximum: PAGE_LIMITS.most })),
    offset: Type.Optional(Type.Integer({ minimum: PAGE_OFFSETS.least, maximum: PAGE_OFFSETS.most })),
  }),
);

export const assistantLatestSchema = compileBodySchema(
  Type.Object({ version: Type.Integer({ minimum: 1 }) }),
);

export const assistantCountSchema = compileBodySchema(
  Type.Object({
    graph_id: Type.Optional(Type.String()),
    metadata: Type.Optional(metadataFilterSchema),
    name: Type.Optional(Type.String({ maxLength: 1000 })),
  }),
);

const assistantFields = [
  "assistant_id",
  "graph_id",
  "name",
  "description",
  "config",
  "context",
  "created_at",
  "updated_at",
  "metadata",
  "version",
] as const;

export const assistantSearchSchema = compileBodySchema(
  Type.Object({
    graph_id: Type.Optional(Type.String()),
    metadata: Type.Optional(metadataFilterSchema),
    limit: Type.Optional(Type.Integer({ minimum: PAGE_LIMITS.least, maximum: PAGE_LIMITS.most })),
    offset: Type.Optional(Type.Integer({ minimum: PAGE_OFFSETS.least, maximum: PAGE_OFFSETS.most })),
    name: Type.Optional(Type.String({ maxLength: 1000 })),
    sort_by: Type.Optional(Type.Enum([...assistantOrders])),
    sort_order: Type.Optional(Type.Enum(["asc", "desc"])),
    select: Type.Optional(Type.Array(Type.Enum(assistantFields), { maxItems: 100 })),
  }),
);
