import { invalidField } from "../model/errors.ts";
import type { CheckpointHead } from "../model/checkpoint.ts";
import type { JsonObject } from "../model/json.ts";
import type { StateWrite } from "../ports/state-update.ts";
import { START } from "../graph/definition-checks.ts";
import type { GraphDefinition } from "../graph/definition.ts";
import { END } from "../graph/commands.ts";
import { lastNodesOf } from "./last-nodes.ts";
import { isEmptyWrite, type UpdateNode } from "./state-update-writes.ts";

/** A special value of `as_node`: the update is an input for the next run. */
export const AS_NODE_INPUT = "__input__";
/** A special value of `as_node`: the update makes a copy of the checkpoint. */
export const AS_NODE_COPY = "__copy__";

/**
 * Returns the `as_node` of a write whose step has several writes.
 * @throws ServiceError `validation.failed` if `as_node` is missing or a special value, which is allowed only for the
 * single write of a step
 */
export function requireAsNode({ as_node, at }: StateWrite): string {
  if (as_node === null) {
    throw invalidField(`${at}as_node`, "is required where one step has several updates");
  }
  if (as_node === END || as_node === AS_NODE_COPY || as_node === AS_NODE_INPUT) {
    throw invalidField(`${at}as_node`, `"${as_node}" must be the only update of its step`);
  }
  return as_node;
}

/**
 * Returns the node named `name`. In a graph made from a machine, `name` may also be a state: the update then counts as
 * a transition to that state.
 * @throws ServiceError `validation.failed` if the graph has no node and no state with this name
 */
export function requireKnownNode(
  { nodes, edges, machine }: GraphDefinition,
  { at }: Pick<StateWrite, "at">,
  name: string,
  values: JsonObject,
): UpdateNode {
  if (name === START || nodes.has(name)) return { name, stateUpdate: null };
  const stateUpdate = machine?.updateEnteringState(name, values);
  const first = edges.get(START);
  if (stateUpdate !== undefined && first?.kind === "always")
    return { name: first.targets[0] as string, stateUpdate };
  const states = machine === undefined ? "" : `, and the states ${machine.stateNames().join(", ") || "none"}`;
  const what = machine === undefined ? "no node" : "no node and no state";
  throw invalidField(
    `${at}as_node`,
    `names "${name}", which is ${what}; the nodes are ${[...nodes.keys()].join(", ")}${states}`,
  );
}

/**
 * The node that ran last, for a write without `as_node`.
 * @throws ServiceError `validation.failed` unless exactly one node ran last
 */
export function inferAsNode(
  definition: GraphDefinition,
  head: CheckpointHead | null,
  write: StateWrite,
): string {
  const last = lastNodesOf(head);
  const [only] = last ?? [];
  const at = `${write.at}as_node`;
  if (last?.length !== 1 || only === undefined) {
    const why =
      last === null
        ? "an input was given last"
        : last.length === 0
          ? "no node has run"
          : `${last.join(", ")} ran last, in parallel`;
    throw invalidField(at, `is required, because it cannot be inferred: ${why}`);
  }
  return requireKnownNode(definition, write, only, {}).name;
}

/**
 * Refuses a write that has values or a command although its `as_node` (`as`) does not allow them.
 * @throws ServiceError `validation.failed`
 */
export function requireNoWrites(write: StateWrite, as: string): void {
  if (isEmptyWrite(write)) return;
  throw invalidField(`${write.at}values`, `must be null where as_node is "${as}"`);
}
