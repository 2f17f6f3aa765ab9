import type { CronFilter } from "../model/cron.ts";
import type { JsonObject } from "../model/json.ts";
import { cronOrders, type CronDefinition, type CronSearch, type NewCron } from "../service/crons/crons.ts";
import type { Schedule } from "../service/crons/cron-schedule.ts";
import type { RawBody } from "./read-body.ts";
import { metadataFilterSchema } from "./metadata-filter-schema.ts";
import { parseRunRequest } from "./run-request.ts";
import { PAGE_LIMITS, PAGE_OFFSETS, runCreateSchema } from "./request-schemas.ts";
import { parseTime } from "./parse-time.ts";
import { Type } from "./typebox.ts";
import { compileBodySchema } from "./body-schema.ts";

const object = Type.Free();
const uuid = Type.String({ format: "uuid" });

const parts = {
  schedule: Type.Optional(Type.String({ maxLength: 200 })),
  timezone: Type.Optional(Type.String({ maxLength: 100 })),
  end_time: Type.Optional(Type.String({ maxLength: 100 })),
  enabled: Type.Optional(Type.Boolean()),
  on_run_completed: Type.Optional(Type.Enum(["delete", "keep"])),
  metadata: Type.Optional(object),
};
const cronParts = compileBodySchema(Type.Object(parts));

const ofNew = { assistant_id: Type.String(), schedule: Type.String() };
const named = compileBodySchema(Type.Object(ofNew));

export const selectableCronFields = [
  "cron_id",
  "assistant_id",
  "thread_id",
  "on_run_completed",
  "end_time",
  "schedule",
  "timezone",
  "created_at",
  "updated_at",
  "user_id",
  "payload",
  "next_run_date",
  "metadata",
  "enabled",
  "last_run",
] as const;

const asked = {
  assistant_id: Type.Optional(Type.String()),
  thread_id: Type.Optional(uuid),
  enabled: Type.Optional(Type.Boolean()),
  metadata: Type.Optional(metadataFilterSchema),
};

export const cronPreviewSchema = compileBodySchema(
  Type.Object({
    schedule: Type.String({ maxLength: 200 }),
    timezone: parts.timezone,
    end_time: parts.end_time,
  }),
);

export const cronCountSchema = compileBodySchema(Type.Object(asked));

export const cronSearchSchema = compileBodySchema(
  Type.Object({
    ...asked,
    limit: Type.Optional(Type.Integer({ minimum: PAGE_LIMITS.least, maximum: PAGE_LIMITS.most })),
    offset: Type.Optional(Type.Integer({ minimum: PAGE_OFFSETS.least, maximum: PAGE_OFFSETS.most })),
    sort_by: Type.Optional(Type.Enum([...cronOrders])),
    sort_order: Type.Optional(Type.Enum(["asc", "desc"])),
    // Older clients select a field that has never existed, so unknown names are accepted.
    select: Type.Optional(Type.Array(Type.String(), { maxItems: 100 })),
  }),
);

/** The fields of a run request that a cron stores for its runs. */
const RUN_FIELDS = [
  "input",
  "config",
  "context",
  "webhook",
  "interrupt_before",
  "interrupt_after",
  "multitask_strategy",
  "stream_mode",
  "stream_subgraphs",
  "stream_resumable",
  "durability",
  "checkpoint_during",
  "timeout_seconds",
] as const;

const ofRun = Object.fromEntries(
  RUN_FIELDS.map((field) => [field, runCreateSchema.schema.properties[field]]),
);
/**
 * The bodies of requests that create and update a cron, as schemas for the API documentation. Requests are validated by {@link
 * parseNewCron} and {@link parseCronChange} instead.
 */
export const cronBodySchemas = {
  create: Type.Object({ ...ofRun, ...parts, ...ofNew }),
  update: Type.Object({ ...ofRun, ...parts }),
};

/** Parses a request to create a cron. @throws ServiceError `validation.failed` */
export function parseNewCron(body: RawBody): NewCron {
  const { assistant_id, schedule } = named.parse(body);
  return { ...parseCronChange(body), assistant_id, schedule };
}

/** Parses a request to change a cron. @throws ServiceError `validation.failed` */
export function parseCronChange(body: RawBody): CronDefinition {
  const { schedule, timezone, end_time, enabled, on_run_completed, metadata } = cronParts.parse(body);
  const run: Record<string, unknown> = {};
  for (const field of RUN_FIELDS) if (body[field] !== undefined) run[field] = body[field];
  // Validates the fields like those of a run request. The assistant's id is a placeholder, because the assistant is checked later.
  parseRunRequest({ assistant_id: "any", ...run });
  return {
    ...(schedule !== undefined && { schedule }),
    // The value null removes the time zone or the end time.
    ...(Object.hasOwn(body, "timezone") && { timezone: timezone ?? null }),
    ...(Object.hasOwn(body, "end_time") && {
      end_time: end_time === undefined ? null : parseTime("end_time", end_time),
    }),
    ...(enabled !== undefined && { enabled }),
    ...(on_run_completed !== undefined && { on_run_completed }),
    ...(metadata !== undefined && { metadata: metadata as JsonObject }),
    run,
  };
}

/** When a cron would fire, as a request for a preview asks. */
export interface SchedulePreviewRequest extends Schedule {
  /** Epoch milliseconds after which the cron would start no more runs; null: no end. */
  readonly end: number | null;
}

/** Parses a request for the next times of a schedule. @throws ServiceError `validation.failed` */
export function parseCronPreview(body: RawBody): SchedulePreviewRequest {
  const { schedule, timezone = null, end_time } = cronPreviewSchema.parse(body);
  return { schedule, timezone, end: end_time === undefined ? null : parseTime("end_time", end_time) };
}

/** Parses a cron search into the query and the selected fields. @throws ServiceError `validation.failed` */
export function parseCronSearch(body: RawBody): {
  readonly query: CronSearch;
  readonly select: readonly string[];
} {
  const {
    select = [],
    limit = PAGE_LIMITS.initial,
    offset = PAGE_OFFSETS.initial,
    ...filter
  } = cronSearchSchema.parse(body);
  return { query: { ...withPlainThreadId(filter), limit, offset } as CronSearch, select };
}

/** Parses the filter of a request that counts crons. @throws ServiceError `validation.failed` */
export const parseCronCount = (body: RawBody): CronFilter =>
  withPlainThreadId(cronCountSchema.parse(body)) as CronFilter;

/** Converts the thread id in a filter to lower case, in which ids are stored. */
const withPlainThreadId = <T extends { readonly thread_id?: string }>(filter: T): T =>
  filter.thread_id === undefined ? filter : { ...filter, thread_id: filter.thread_id.toLowerCase() };
