import type { MachineParts } from "../graph/definition.ts";
import type { Schema } from "../graph/standard-schema.ts";
import { embedSchema } from "../graph/json-schema-conversion.ts";
import { MAX_SCHEMA_LENGTH } from "../graph/interrupts.ts";
import { isObject, type JsonObject, MAX_DEPTH } from "../model/json.ts";
import type { DeclaredSchemas } from "./declared-schemas.ts";
import { matchesEventDescriptor, type MachineEvent, type AcceptedByState } from "./machine-driver.ts";
import { REFERENCE_FAULT, REFERENCE_KEY } from "./stored-actor-references.ts";

/**
 * The maximum length of an event type, in characters. It is limited because a machine with wildcards takes any type, and XState keeps each
 * type that was ever sent to a machine in memory until the process ends.
 */
const MAX_TYPE_CHARACTERS = 256;

/**
 * The largest number of nesting levels of an event. A stored value may have {@link MAX_DEPTH} levels, and the event is stored several
 * levels deep within such a value.
 */
const MAX_EVENT_DEPTH = MAX_DEPTH - 16;
/**
 * The largest number of values in an event, at all levels together. The event's data may become part of the machine's state, which each
 * macrostep copies several times: with 99,000 more members in the state, a macrostep took 3 s.
 */
const MAX_EVENT_VALUES = 10_000;

/**
 * A schema that accepts an event if the machine takes it, guards included, and that describes the possible events for forms. The data of an
 * event is not validated here, because it was validated when the event was sent. `whyFails`: the error that the event's transition throws;
 * undefined if it throws none.
 */
export function acceptedEventSchema(
  accepted: AcceptedByState,
  schemas: DeclaredSchemas | null,
  whyFails: (event: MachineEvent) => string | undefined = () => undefined,
): Schema<unknown, MachineEvent> {
  const { events, can } = accepted;
  const validate = (event: unknown) => {
    const why = whyNotEvent(event, accepted);
    if (why !== undefined) return { issues: [{ message: why }] };
    const { type } = event as MachineEvent;
    if (can(event as MachineEvent)) {
      const error = whyFails(event as MachineEvent);
      if (error === undefined) return { value: event as MachineEvent };
      return { issues: [{ message: `the machine has dropped "${type}", because it fails with ${error}` }] };
    }
    return { issues: [{ message: `no transition for "${type}" is enabled now: its guard does not hold` }] };
  };
  const described = () => jsonSchemaOfEvents(events, schemas);
  const standard = { version: 1 as const, vendor: "heddle", validate, jsonSchema: { input: described } };
  return { "~standard": standard };
}

/**
 * The JSON Schema of the events of some types or descriptors. If the data of at least one of them can be described, the schema has an
 * `anyOf` with a schema for each of `events`, in the same order, unless that makes it longer than {@link MAX_SCHEMA_LENGTH}.
 */
export function jsonSchemaOfEvents(events: readonly string[], schemas: DeclaredSchemas | null): JsonObject {
  const isOpen = events.some((type) => type.endsWith("*"));
  const type = isOpen ? { type: "string" } : { type: "string", enum: events };
  const plain = { type: "object", required: ["type"], properties: { type } };
  if (schemas === null) return plain;
  const declared = events.map((event) => schemas.eventSchema(event));
  if (declared.every((schema) => schema === null)) return plain;
  const anyOf = declared.map((schema, index) =>
    schema === null ? anyDataOf(events[index] as string) : embedSchema(schema, `/anyOf/${index}`),
  );
  const full = { ...plain, anyOf };
  // A question is sent without any schema if its schema is longer than this limit.
  return JSON.stringify(full).length > MAX_SCHEMA_LENGTH ? plain : full;
}

const anyDataOf = (type: string) => ({
  type: "object",
  required: ["type"],
  properties: { type: type.endsWith("*") ? { type: "string" } : { const: type } },
});

/**
 * Why a machine that handles `events` cannot take an event, whatever its guards return; undefined if the machine may take the event. `takes`:
 * a word of the message, `can take` for the events of the current state and `takes` for those of all states.
 */
export function whyNotEvent(
  event: unknown,
  { events, forbidden = [] }: { readonly events: readonly string[]; readonly forbidden?: readonly string[] },
  takes: "can take" | "takes" = "can take",
): string | undefined {
  const none = takes === "takes" ? "none" : "none: it waits for a timer";
  const possible = `the machine ${takes} ${events.length === 0 ? none : events.join(", ")}`;
  if (!isObject(event) || typeof event["type"] !== "string")
    return `must be an event, { type: "..." }; ${possible}`;
  const { type } = event;
  const refused = `is "${type.slice(0, 128)}"`;
  // Clients must not send such events: `xstate.stop` ends a machine, and `xstate.done.actor.*` contains the result of an actor.
  if (type.startsWith("xstate.")) return `${refused}, a name that XState keeps for itself; ${possible}`;
  if (type.length > MAX_TYPE_CHARACTERS)
    return `has ${type.length} characters, more than ${MAX_TYPE_CHARACTERS}; ${possible}`;
  if (type === "*") return `${refused}, which stands for any event, and is none; ${possible}`;
  if (forbidden.includes(type)) return `${refused}, which the state forbids; ${possible}`;
  if (!matchesEventDescriptor(type, events)) return `${refused}; ${possible}`;
  const why = whyNotData(event);
  return why === undefined ? undefined : `${refused}, with data that ${why}`;
}

/** What is wrong with the data of an event: too many levels or values, or references to actors. Undefined if nothing is. */
function whyNotData(event: object): string | undefined {
  let count = 0;
  let level: readonly object[] = [event];
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > MAX_EVENT_DEPTH) return `are nested deeper than ${MAX_EVENT_DEPTH} levels`;
    const next: object[] = [];
    for (const one of level) {
      if (Object.hasOwn(one, REFERENCE_KEY)) return REFERENCE_FAULT.data;
      for (const value of Object.values(one) as unknown[]) {
        if (++count > MAX_EVENT_VALUES) return `have more than ${MAX_EVENT_VALUES} values`;
        if (typeof value === "object" && value !== null) next.push(value);
      }
    }
    level = next;
  }
  return undefined;
}

/**
 * Whether the machine takes the event of a queued run in its current state. False also if a guard throws: the run then stays queued, and
 * fails with the guard's error when it starts.
 */
export function canTake(accepted: AcceptedByState, event: MachineEvent): boolean {
  try {
    return accepted.can(event);
  } catch {
    return false;
  }
}

export const refusesAnswer: MachineParts["refusesAnswer"] = (answer, question) =>
  isObject(question) && Array.isArray(question["events"])
    ? whyNotEvent(answer, question as Pick<AcceptedByState, "events" | "forbidden">)
    : undefined;
