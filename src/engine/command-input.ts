import { ServiceError } from "../model/errors.ts";
import { isObject } from "../model/json.ts";
import type { Command } from "../model/run.ts";
import type { GraphDefinition } from "../graph/definition.ts";
import { send } from "../graph/commands.ts";
import { normalizeTarget, normalizeUpdate, type NodeResult } from "../graph/node-return.ts";
import type { StoredTarget } from "../graph/superstep.ts";

export const isGiven = (value: unknown) => value !== null && value !== undefined;

/** Reads the targets of a command's `goto`. @throws ServiceError `state.invalid`, `value.unstorable` */
export function normalizeGoto(
  definition: GraphDefinition,
  goto: Command["goto"],
  at = "command.goto",
): readonly StoredTarget[] {
  if (!isGiven(goto)) return [];
  return (Array.isArray(goto) ? (goto as readonly unknown[]) : [goto]).map((target) =>
    normalizeTarget(
      definition,
      isObject(target) ? send(String(target["node"]), target["input"]) : target,
      at,
    ),
  );
}

/** Reads a command's `update`: an object, or pairs of key and value. @throws ServiceError `state.invalid`, `value.unstorable` */
export function normalizeCommandUpdate(
  definition: GraphDefinition,
  update: unknown,
  namespace: string,
): Pick<NodeResult, "update" | "untracked"> {
  if (!isGiven(update)) return { update: null, untracked: null };
  let fields = update;
  if (Array.isArray(update)) {
    for (const pair of update as readonly unknown[]) {
      if (!Array.isArray(pair) || pair.length !== 2 || typeof pair[0] !== "string") {
        throw new ServiceError(
          "state.invalid",
          "command.update must be an object, or pairs of key and value",
        );
      }
    }
    fields = Object.fromEntries(update as readonly (readonly [string, unknown])[]);
  }
  return normalizeUpdate(definition, fields, "command.update", namespace);
}
