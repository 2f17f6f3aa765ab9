import type { CheckpointHead, PlannedTask } from "./checkpoint.ts";
import type { PlainError } from "./errors.ts";
import { isObject } from "./json.ts";

/**
 * The latest checkpoint of a child machine. The root machine's checkpoints contain one such record for each child, in their
 * engine data.
 */
export interface ChildPosition {
  /** The number of the child, unique on its branch of the thread. */
  readonly start: number;
  readonly ns: string;
  readonly id: string;
  readonly step: number;
  /** The keys of the child machine's state. */
  readonly keys: readonly string[];
}

/** Whether a child machine goes on after a checkpoint, or how it has ended. `stopped`: its parent machine has stopped it. */
export type ChildMachineStatus =
  | { readonly status: "active" | "done" | "stopped" }
  | { readonly status: "error"; readonly error: PlainError };

/** The child machines at a checkpoint, at all levels. */
export function childMachinePositionsAt(
  head: Pick<CheckpointHead, "engine"> | null,
): readonly ChildPosition[] {
  const children = head?.engine?.["children"];
  return Array.isArray(children) ? (children.filter(isObject) as unknown as readonly ChildPosition[]) : [];
}

/** Leaves out the tasks that run actors of child machines. Clients see those tasks in the namespaces of the child machines. */
export const ownTasks = (next: readonly PlannedTask[]): readonly PlannedTask[] =>
  next.filter(({ child }) => child === undefined);

/**
 * The names of the nodes that run next. All tasks of a child machine, and of the machines below it, count as one node with the child's
 * name.
 */
export function nextNodeNames(next: readonly PlannedTask[]): readonly string[] {
  const children = new Set<string>();
  return next.flatMap(({ name, child }) => {
    if (child === undefined) return [name];
    const top = rootSegmentOf(child.ns);
    if (children.has(top)) return [];
    children.add(top);
    return [top.split(":", 1)[0] ?? top];
  });
}

/** The outermost part of a namespace: `node:task`. */
export const rootSegmentOf = (ns: string): string => ns.split("|", 1)[0] ?? ns;

/** The child machines directly below a namespace. `own`: the last part of the child's namespace, `name:task`. */
export function childrenWithin(
  positions: readonly ChildPosition[],
  ns: string,
): readonly { readonly own: string; readonly child: ChildPosition }[] {
  const above = ns === "" ? "" : `${ns}|`;
  return positions.flatMap((child) => {
    const own = child.ns.startsWith(above) ? child.ns.slice(above.length) : "|";
    return own.includes("|") ? [] : [{ own, child }];
  });
}
