import type { MachineSchemas } from "../graph/definition.ts";
import type { SchemaResult } from "../graph/standard-schema.ts";
import { toPlainError } from "../model/errors.ts";
import { type JsonObject, toStorable } from "../model/json.ts";
import { whyNotEvent } from "./event-validation.ts";
import type { MachineDriver, MachineEvent } from "./machine-driver.ts";
import { type MachineVersions, versionOfState } from "./machine-versions.ts";

/**
 * The schemas of a graph's machine. An input is validated by the schema of the current version, an event by that of the version of the
 * thread's state.
 */
export function machineSchemasOf(versions: MachineVersions): MachineSchemas | undefined {
  if (!versions.haveSchemas) return undefined;
  const { input = null, inputJson = null } = versions.current.schemas ?? {};
  return {
    input,
    inputJson,
    areByVersion: !versions.isSingle,
    parseEvent: async (event, values) => {
      if (whyNotEvent(event, versions) !== undefined) return { value: event };
      const { schemas } = versions.find(versionOfState(values ?? {})) ?? versions.current;
      return schemas === null ? { value: event } : schemas.parseEvent(event as MachineEvent);
    },
  };
}

/** Why the machine cannot begin without an input; undefined if it can. */
export function whyNeedsInput(driver: MachineDriver): string | undefined {
  try {
    const none = resultWithoutInput(driver);
    if (none !== null && none.issues !== undefined)
      return "is required: the machine declares a schema for it";
    driver.begin(defaultInput(driver) ?? undefined);
    return undefined;
  } catch (thrown) {
    return `is required: the machine cannot begin without one (${toPlainError(thrown).message})`;
  }
}

/** What the schema of the input returns where no input is given; null if there is no schema, or if it is asynchronous. */
function resultWithoutInput({ schemas }: MachineDriver): SchemaResult<unknown> | null {
  const result = schemas?.input?.["~standard"].validate(undefined) ?? null;
  if (!(result instanceof Promise)) return result;
  // Nobody awaits the result. If it rejected, the unhandled rejection would end the process.
  result.catch(() => undefined);
  return null;
}

/** The input of a machine that is given none: the default of its schema; null if there is none. */
export function defaultInput(driver: MachineDriver): unknown {
  const result = resultWithoutInput(driver);
  return result === null || result.issues !== undefined
    ? null
    : toStorable(result.value ?? null, "the default of the input");
}

/** The context with which the machine begins for the input `{}`; undefined if it cannot begin with this input. */
export function firstContext(driver: MachineDriver): JsonObject | undefined {
  try {
    return driver.begin({}).snapshot.context;
  } catch {
    return undefined;
  }
}
