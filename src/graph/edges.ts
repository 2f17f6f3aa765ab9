import { START } from "./definition-checks.ts";
import type { Definition } from "./definition.ts";
import { END } from "./commands.ts";

/** Where a node leads, as drawings show it. */
export interface Edge {
  readonly to: string;
  /** Only the run itself knows whether it is taken. */
  readonly guard?: string;
  readonly description?: string;
}

/** The guard of an edge that a function takes or not. */
export const CHOSEN = "chosen";

/** Where it leads is a function's to say, so every place is shown that nothing else leads to. */
const UNDECLARED = {
  guard: CHOSEN,
  description: "chosen at run time; the graph does not declare where",
};

/** Every edge, by the node that it leaves, the start first and the end last. */
export function edgesOf(definition: Definition): ReadonlyMap<string, readonly Edge[]> {
  const { nodes, edges } = definition;
  const out = new Map<string, Edge[]>([START, ...nodes.keys(), END].map((name) => [name, []]));
  const led = new Set<string>();
  const lead = (from: string, edge: Edge) => {
    led.add(edge.to);
    out.get(from)?.push(edge);
  };
  for (const [from, { kind, targets }] of edges) {
    for (const to of targets ?? []) lead(from, kind === "choice" ? { to, guard: CHOSEN } : { to });
  }
  for (const node of nodes.values()) {
    for (const from of node.after) {
      const others = node.after.filter((one) => one !== from);
      lead(from, {
        to: node.name,
        ...(others.length > 0 && { guard: `${others.join(", ")} done`, description: "waits for all" }),
      });
    }
  }
  const unled = [...nodes.keys()].filter((name) => !led.has(name));
  const open = [...edges].filter(([, { targets }]) => targets === null).map(([from]) => from);
  const last = [...nodes.keys()].filter((name) => out.get(name)?.length === 0 && !open.includes(name));
  for (const from of open) {
    const to = unled.length > 0 ? unled : [...nodes.keys()];
    for (const one of [...to.filter((name) => name !== from), END])
      out.get(from)?.push({ to: one, ...UNDECLARED });
  }
  for (const from of last) {
    // A body may say itself where to go, by `to` or `send`.
    const to = open.length === 0 && !unled.includes(from) ? unled : [];
    for (const one of to) out.get(from)?.push({ to: one, ...UNDECLARED });
    out.get(from)?.push({ to: END });
  }
  return out;
}
