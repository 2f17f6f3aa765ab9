import { type Cron, isJsonRecord, type JsonRecord, type JsonSchema } from "../api/records.ts";
import { differingMembers } from "../assistants/differing-members.ts";
import { assertNotOverwriting } from "../components/assert-not-overwriting.ts";
import { changedMetadata } from "../components/changed-metadata.ts";
import { fromDatetimeLocal, toDatetimeLocal } from "../components/datetime-local.ts";
import { EMPTY_RUN_DRAFT, type RunInputDraft } from "../threads/run-drafts.ts";
import { messagesProperty } from "../threads/run-input.ts";
import { requestFieldsOf, type RunSettings } from "../threads/run-options.tsx";
import { BROWSER_TIME_ZONE } from "./next-runs.tsx";

/** The fields of the form for a cron, besides the input and the options of its runs. */
export interface CronFields {
  readonly schedule: string;
  /** Empty for UTC. */
  readonly timezone: string;
  /** The id of the thread on which the runs start, as typed; null if each run gets a new thread. */
  readonly thread: string | null;
  readonly onRunCompleted: "delete" | "keep";
  /** A time in the browser's time zone, such as `2027-01-31T09:00`; empty for no end. */
  readonly endTime: string;
  readonly metadata: JsonRecord;
  readonly enabled: boolean;
}

/** What the user has entered into the form for a cron. */
export interface EnteredCron {
  readonly fields: CronFields;
  readonly settings: RunSettings;
  /** Undefined if the user has not changed the input of a stored cron. */
  readonly input: JsonRecord | undefined;
}

const NEW_CRON: CronFields = {
  schedule: "",
  timezone: BROWSER_TIME_ZONE,
  thread: null,
  onRunCompleted: "delete",
  endTime: "",
  metadata: {},
  enabled: true,
};

/** Returns the fields with which the form begins. `cron`: null for a new cron. */
export function fieldsOfCron(cron: Cron | null): CronFields {
  if (cron === null) return NEW_CRON;
  return {
    schedule: cron.schedule,
    timezone: cron.timezone ?? "",
    thread: cron.thread_id,
    onRunCompleted: cron.on_run_completed ?? "delete",
    endTime: cron.end_time === null ? "" : toDatetimeLocal(cron.end_time),
    metadata: cron.metadata,
    enabled: cron.enabled,
  };
}

/**
 * Returns the end of a cron as the API takes it; null for no end. A time that the user has not changed keeps its
 * seconds, which the field does not show.
 */
export function cronEndTimeOf({ endTime }: CronFields, cron: Cron | null): string | null {
  if (endTime === fieldsOfCron(cron).endTime) return cron?.end_time ?? null;
  // An invalid time is sent as it is: the server reports the error.
  return endTime === "" ? null : fromDatetimeLocal(endTime);
}

/** Returns the options of a cron's runs as the form shows them. */
export function settingsOfCron(cron: Cron | null): RunSettings {
  const { payload = {} } = cron ?? {};
  const names = (value: unknown) =>
    value === "*" ? "*" : Array.isArray(value) && value.length > 0 ? value.join(", ") : undefined;
  const [before, after] = [names(payload["interrupt_before"]), names(payload["interrupt_after"])];
  const { config, context, multitask_strategy: strategy } = payload;
  return {
    strategy: (strategy as RunSettings["strategy"] | undefined) ?? "enqueue",
    ...(before !== undefined && { before }),
    ...(after !== undefined && { after }),
    ...(isFilled(config) && { config }),
    ...(isFilled(context) && { context }),
  };
}

const isFilled = (value: unknown): value is JsonRecord =>
  isJsonRecord(value) && Object.keys(value).length > 0;

/**
 * Returns the stored input of a cron as a draft of the form. A single user message goes into the message field, other
 * values into the fields of the schema. If a value has no field, the whole input is shown as JSON.
 */
export function runDraftFromCronInput(input: unknown, schema: JsonSchema | null): RunInputDraft {
  if (input === undefined || input === null) return EMPTY_RUN_DRAFT;
  if (!isJsonRecord(input)) return { ...EMPTY_RUN_DRAFT, isJson: true, json: JSON.stringify(input, null, 2) };
  const properties = schema?.properties;
  const talk = messagesProperty(schema);
  const { [talk ?? ""]: messages, ...others } = input;
  const text = messages === undefined ? "" : singleUserText(messages);
  const rest = talk === null ? input : others;
  const hasFields =
    properties !== undefined && Object.keys(rest).every((name) => Object.hasOwn(properties, name));
  if (text === null || !hasFields) return { ...EMPTY_RUN_DRAFT, isJson: true, input };
  return { ...EMPTY_RUN_DRAFT, text, input: rest };
}

/** Returns the text of a list of messages if it is one user message with nothing but a text; otherwise null. */
function singleUserText(messages: unknown): string | null {
  const [message, ...more] = Array.isArray(messages) ? (messages as readonly unknown[]) : [];
  if (!isJsonRecord(message) || more.length > 0) return null;
  const { role, content, ...others } = message;
  const isPlain = role === "user" && Object.keys(others).length === 0;
  return isPlain && typeof content === "string" && content.trim() !== "" ? content : null;
}

/** Returns the request that creates a cron. */
export function newCronRequest(assistant: string, { fields, settings, input }: EnteredCron): JsonRecord {
  const { thread, onRunCompleted, metadata, enabled } = fields;
  const end_time = cronEndTimeOf(fields, null);
  return {
    assistant_id: assistant,
    ...cronTimesOf(fields),
    ...(end_time !== null && { end_time }),
    ...(thread === null && { on_run_completed: onRunCompleted }),
    metadata,
    enabled,
    input,
    ...requestFieldsOf(settings, thread !== null),
  };
}

/** The names of the time zones that the browser knows. */
export const TIME_ZONES: readonly string[] = [
  "UTC",
  ...Intl.supportedValuesOf("timeZone").filter((zone) => zone !== "UTC"),
];

/** Returns the place of a time zone as people write it, such as `New York` for `America/New_York`. */
export const placeOf = (zone: string): string => zone.slice(zone.lastIndexOf("/") + 1).replaceAll("_", " ");

/**
 * Returns the time zone that a text means: `America/New_York` for `New York` and for `america/new york`. A text that
 * means none, or several, is returned unchanged: the server reports the error.
 */
function timeZoneOf(text: string): string {
  if (isTimeZoneName(text)) return text;
  const name = text.toLowerCase().replaceAll(/\s+/g, " ");
  const found = TIME_ZONES.filter((zone) =>
    [zone.replaceAll("_", " "), placeOf(zone)].some((one) => one.toLowerCase() === name),
  );
  return found.length === 1 ? (found[0] ?? text) : text;
}

function isTimeZoneName(text: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: text }).format(0) !== "";
  } catch {
    return false;
  }
}

/** The schedule and the time zone as the API takes them. */
export const cronTimesOf = ({ schedule, timezone }: CronFields): Pick<Cron, "schedule" | "timezone"> => ({
  schedule: schedule.trim(),
  timezone: timezone.trim() === "" ? null : timeZoneOf(timezone.trim()),
});

/**
 * Values that have the same effect as absent fields. They are sent for cleared fields, because a change of a cron
 * cannot remove a field.
 */
const ABSENT: JsonRecord = { interrupt_before: [], interrupt_after: [], config: {}, context: {} };

/**
 * Returns the request that changes a cron. It contains only the fields that differ: somebody else may have changed the
 * others, and a user who sends a field of the run request becomes the user of the cron's runs.
 * @throws Error if a member of the metadata was deleted
 */
export function cronChanges(cron: Cron, { fields, settings, input }: EnteredCron): JsonRecord {
  const before = fieldsOfCron(cron);
  const { enabled, onRunCompleted, metadata } = fields;
  const times = cronTimesOf(fields);
  const runBefore = { ...ABSENT, ...requestFieldsOf(settingsOfCron(cron), true) };
  const run: JsonRecord = { ...ABSENT, ...requestFieldsOf(settings, true) };
  const changed = differingMembers(runBefore, run);
  const newMetadata = changedMetadata(before.metadata, metadata);
  return {
    ...(times.schedule !== cron.schedule && { schedule: times.schedule }),
    ...(times.timezone !== cron.timezone && { timezone: times.timezone }),
    ...(fields.endTime !== before.endTime && { end_time: cronEndTimeOf(fields, cron) }),
    ...(enabled !== before.enabled && { enabled }),
    ...(onRunCompleted !== before.onRunCompleted && { on_run_completed: onRunCompleted }),
    ...(Object.keys(newMetadata).length > 0 && { metadata: newMetadata }),
    ...Object.fromEntries(changed.map((name) => [name, run[name]])),
    ...(input !== undefined && !isSameInput(cron.payload["input"], input) && { input }),
  };
}

/**
 * Checks that a change of a cron overwrites no change that somebody else has made since the form was opened. `before`:
 * the cron when the form was opened; `now`: the stored cron.
 * @throws Error naming the fields that somebody else has changed
 */
export function assertCronNotOverwritten(before: Cron, now: Cron, { metadata, ...fields }: JsonRecord): void {
  const fieldsOf = (cron: Cron): JsonRecord => ({ ...ABSENT, ...cron.payload, ...cron });
  assertNotOverwriting(fieldsOf(before), fieldsOf(now), fields);
  if (isJsonRecord(metadata)) assertNotOverwriting(before.metadata, now.metadata, metadata);
}

/** Returns what a cron runs and when, without what changes with its runs or when it is paused. */
export const definitionOfCron = (cron: Cron): JsonRecord => {
  const { assistant_id, thread_id, on_run_completed, schedule, timezone, end_time, payload, metadata } = cron;
  return { assistant_id, thread_id, on_run_completed, schedule, timezone, end_time, payload, metadata };
};

function isSameInput(before: unknown, input: JsonRecord): boolean {
  const stored = before ?? {};
  if (!isJsonRecord(stored)) return false;
  return differingMembers(stored, input).length === 0 && differingMembers(input, stored).length === 0;
}
