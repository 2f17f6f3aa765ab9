/** The edges of a graph: targets by source. Every target MUST be a key too. */
export type EdgeMap = ReadonlyMap<string, ReadonlySet<string>>;

/**
 * The immediate dominator of each node: the last node before it through which every path from `start` goes. Unreachable nodes
 * are absent. It uses the algorithm of Cooper, Harvey and Kennedy, which iterates in reverse postorder until nothing changes.
 */
export function dominators(edges: EdgeMap, start: string): ReadonlyMap<string, string> {
  const order = postorder(edges, start).reverse();
  const positions = new Map(order.map((name, i) => [name, i]));
  const before = new Map<string, string[]>(order.map((name) => [name, []]));
  for (const from of order) for (const to of edges.get(from) ?? []) before.get(to)?.push(from);
  const found = new Map([[start, start]]);
  const at = (name: string) => positions.get(name) ?? 0;
  const common = (a: string, b: string): string => {
    let [left, right] = [a, b];
    while (left !== right) {
      if (at(left) > at(right)) left = found.get(left) ?? start;
      else right = found.get(right) ?? start;
    }
    return left;
  };
  for (let changed = true; changed;) {
    changed = false;
    for (const name of order) {
      if (name === start) continue;
      const known = (before.get(name) ?? []).filter((one) => found.has(one));
      const next = known.reduce(common);
      if (found.get(name) === next) continue;
      found.set(name, next);
      changed = true;
    }
  }
  found.delete(start);
  return found;
}

function postorder(edges: EdgeMap, start: string): string[] {
  const order: string[] = [];
  const seen = new Set([start]);
  // Uses an explicit stack, because a chain of nodes may be longer than the call stack allows.
  const stack = [{ name: start, left: [...(edges.get(start) ?? [])] }];
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    const next = top.left.pop();
    if (next === undefined) {
      order.push(top.name);
      stack.pop();
    } else if (!seen.has(next)) {
      seen.add(next);
      stack.push({ name: next, left: [...(edges.get(next) ?? [])] });
    }
  }
  return order;
}
