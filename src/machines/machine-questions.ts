import { jsonSchemaOf } from "../graph/json-schema-conversion.ts";
import { toPlainError } from "../model/errors.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { AcceptedEvents } from "../model/machine-mailbox.ts";
import { acceptedEventSchema, questionOf, describeEvents } from "./event-validation.ts";
import type { MachineDriver, AcceptedByState } from "./machine-driver.ts";
import { SNAPSHOT_KEY, snapshotOf, STATE_KEY, storedMachineOf } from "./machine-state.ts";
import { type MachineVersions, versionOfState } from "./machine-versions.ts";

/** See `MachineParts.continuationError`. */
export function continuationError(versions: MachineVersions, values: JsonObject, isChanged: boolean) {
  if ((values[SNAPSHOT_KEY] ?? null) === null) return null;
  try {
    const { driver, state } = versions.at(values);
    if (isChanged) driver.accepted(snapshotOf(state));
    return null;
  } catch (thrown) {
    return toPlainError(thrown);
  }
}

/** The events that the machine accepts while promise actors of it run; null if none runs, or the state is of no version of the graph. */
export function eventsAcceptedAtWork(versions: MachineVersions, values: JsonObject): AcceptedEvents | null {
  const driver = versions.find(versionOfState(values));
  if (driver === undefined) return null;
  try {
    if (storedMachineOf(values).work.length === 0) return null;
    const { events } = driver.accepted(snapshotOf(values));
    const schema = driver.schemas === null ? null : describeEvents(events, driver.schemas);
    return { state: values[STATE_KEY], events, schema };
  } catch {
    // The machine has not begun yet, or it no longer has the stored state.
    return null;
  }
}

export const versionedQuestion = (
  { version }: MachineDriver,
  state: JsonObject,
  accepted: AcceptedByState,
) => ({
  ...questionOf(state, accepted),
  ...(version !== null && { version }),
});

/**
 * Whether the version of the machine that asked a question has to be migrated. The events that the migrated machine takes depend on the
 * thread's state, so an answer is checked completely only when its run has migrated the machine.
 */
export function isAskedByMigratedVersion(versions: MachineVersions, question: unknown): boolean {
  const { version = null } = isObject(question) ? question : {};
  return (version === null || typeof version === "string") && versions.migrates(version);
}

/**
 * The question that the machine in a thread's state asks after its migration. Null if its version is one of the graph's and so needs no
 * migration, or if it cannot be migrated.
 */
export function migratedQuestion(versions: MachineVersions, values: JsonObject) {
  if (!versions.migrates(versionOfState(values))) return null;
  try {
    const { driver, state } = versions.at(values);
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
