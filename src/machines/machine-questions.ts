import { jsonSchemaOf } from "../graph/json-schema-conversion.ts";
import { toPlainError } from "../model/errors.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { AcceptedEvents } from "../model/machine-mailbox.ts";
import { acceptedEventSchema, jsonSchemaOfEvents } from "./event-validation.ts";
import type { MachineDriver, AcceptedByState } from "./machine-driver.ts";
import { SNAPSHOT_KEY, snapshotOf, STATE_KEY, storedMachineOf } from "./machine-state.ts";
import { type MachineVersions, versionOfState } from "./machine-versions.ts";

/** See `MachineParts.continuationError`. */
export function continuationError(versions: MachineVersions, values: JsonObject, isChanged: boolean) {
  if ((values[SNAPSHOT_KEY] ?? null) === null) return null;
  try {
    const { driver, state } = versions.continuationOf(values);
    if (isChanged) driver.accepted(snapshotOf(state));
    return null;
  } catch (thrown) {
    return toPlainError(thrown);
  }
}

/**
 * The events that the machine accepts while promise actors of it run. Null if none runs, if the graph lacks the version of the state, or if
 * that version no longer has the state.
 */
export function eventsAcceptedAtWork(versions: MachineVersions, values: JsonObject): AcceptedEvents | null {
  const driver = versions.find(versionOfState(values));
  if (driver === undefined) return null;
  try {
    if (storedMachineOf(values).work.length === 0) return null;
    const { events } = driver.accepted(snapshotOf(values));
    const schema = driver.schemas === null ? null : jsonSchemaOfEvents(events, driver.schemas);
    return { state: values[STATE_KEY], events, schema };
  } catch {
    // The machine has not begun yet, so no actor runs, or it no longer has the stored state.
    return null;
  }
}

/** The question of a machine that waits for an event, which is the value of its run's interrupt. It names the machine's version, if it has one. */
export const versionedQuestion = (
  { version }: MachineDriver,
  state: JsonObject,
  { tags, meta, events, forbidden }: AcceptedByState,
) => ({
  state: state[STATE_KEY],
  tags,
  meta,
  events,
  ...(forbidden.length > 0 && { forbidden }),
  ...(version !== null && { version }),
});

/**
 * Whether a question was asked by a version of the machine that the graph no longer has, so that the run with the answer migrates the
 * machine first. The events that the migrated machine takes depend on the
 * thread's state, so an answer is checked completely only when its run has migrated the machine.
 */
export function isAskedBeforeMigration(versions: MachineVersions, question: unknown): boolean {
  const { version = null } = isObject(question) ? question : {};
  return (version === null || typeof version === "string") && versions.mustMigrate(version);
}

/**
 * The question that the machine in a thread's state asks after its migration. Null if its version is one of the graph's and so needs no
 * migration, or if it cannot be migrated.
 */
export function migratedQuestion(versions: MachineVersions, values: JsonObject) {
  if (!versions.mustMigrate(versionOfState(values))) return null;
  try {
    const { driver, state } = versions.continuationOf(values);
    const accepted = driver.accepted(snapshotOf(state));
    return {
      value: versionedQuestion(driver, state, accepted),
      schema: jsonSchemaOf(acceptedEventSchema(accepted, driver.schemas), "input"),
    };
  } catch {
    // The next run fails with the error.
    return null;
  }
}
