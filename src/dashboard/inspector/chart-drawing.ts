import elk, { type ElkExtendedEdge, type ElkNode } from "elkjs/lib/elk-api.js";
import type { ChartModel, DrawnState } from "./chart-model.ts";
import type { ChartWithTakenTransitions } from "./taken-transitions.ts";

const SVG = "http://www.w3.org/2000/svg";
/** The largest number of characters in a line of a label, including the `…` of a shortened line. */
const MAX_LINE_CHARACTERS = 32;
/** The largest number of lines in a label. */
const MAX_LINES = 4;

const OPTIONS = {
  "elk.algorithm": "layered",
  "elk.direction": "DOWN",
  "elk.hierarchyHandling": "INCLUDE_CHILDREN",
  "elk.edgeRouting": "ORTHOGONAL",
  "elk.json.edgeCoords": "ROOT",
  "elk.json.shapeCoords": "ROOT",
  "elk.spacing.nodeNode": "28",
  "elk.spacing.edgeLabel": "4",
  "elk.layered.spacing.nodeNodeBetweenLayers": "30",
  "elk.layered.spacing.edgeNodeBetweenLayers": "16",
  "elk.edgeLabels.inline": "false",
  "elk.padding": "[top=12,left=12,bottom=12,right=12]",
};

interface LayoutWorker {
  readonly engine: InstanceType<typeof elk.default>;
  /** Rejects if the worker's script cannot be loaded or throws; otherwise stays pending. */
  readonly failed: Promise<never>;
}

/**
 * Draws charts as SVG. A web worker computes each layout once. The worker is started only when it is needed, because
 * its script is large.
 */
export class ChartRenderer {
  readonly #worker: string;
  readonly #layouts = new Map<string, Promise<ElkNode>>();
  #running: LayoutWorker | null = null;

  /** `worker`: the URL of the worker's script. */
  constructor(worker: string) {
    this.#worker = worker;
  }

  /** Starts the layout worker, unless it runs. A page calls this while it still reads the chart, to save time. */
  start(): LayoutWorker {
    if (this.#running !== null) return this.#running;
    let fail: (cause: Error) => void = () => undefined;
    const failed = new Promise<never>((_, reject) => (fail = reject));
    // If no layout is being computed, a failure is ignored: the next layout starts another worker.
    failed.catch(() => undefined);
    const engine = new elk.default({
      workerFactory: () => {
        const worker = new Worker(this.#worker, { type: "module" });
        // The layout library does not listen for this event. If the worker failed to load, the layout promises would
        // stay pending.
        worker.addEventListener("error", () => {
          worker.terminate();
          if (this.#running === started) this.#running = null;
          fail(new Error("The layout worker could not be loaded, or failed."));
        });
        return worker;
      },
    });
    const started: LayoutWorker = { engine, failed };
    this.#running = started;
    return started;
  }

  /** Draws a chart as SVG. `key` identifies the chart's layout in the cache. */
  async draw(chart: ChartModel, key: string): Promise<SVGSVGElement> {
    let layout = this.#layouts.get(key);
    if (layout === undefined) {
      const { engine, failed } = this.start();
      layout = Promise.race([engine.layout(graphOf(chart)), failed]);
      this.#layouts.set(key, layout);
      // Failed layouts are removed from the cache, so that the chart can be drawn later.
      layout.catch(() => this.#layouts.delete(key));
    }
    return svgOf(chart, await layout);
  }
}

function graphOf({ root, frame, arrows }: ChartModel): ElkNode {
  const edges = arrows.map(({ from, to, labels }, i): ElkExtendedEdge => {
    const text = shown(labels);
    const width = Math.max(...text.map(widthOf), 0) + 6;
    return {
      id: `e${i}`,
      sources: [`s${from}`],
      targets: [`s${to}`],
      labels:
        text.length === 0 ? [] : [{ id: `l${i}`, text: text.join("\n"), width, height: text.length * 14 }],
    };
  });
  return {
    id: "root",
    layoutOptions: OPTIONS,
    children: (frame === null ? root : [frame]).map(nodeOf),
    edges,
  };
}

function nodeOf(state: DrawnState): ElkNode {
  const width = Math.min(state.name.length, MAX_LINE_CHARACTERS) * 7.6 + 28;
  if (state.children.length === 0) return { id: `s${state.index}`, width, height: 34 };
  return {
    id: `s${state.index}`,
    children: state.children.map(nodeOf),
    layoutOptions: {
      "elk.padding": "[top=36,left=14,bottom=14,right=14]",
      "elk.nodeSize.constraints": "MINIMUM_SIZE",
      "elk.nodeSize.minimum": `(${width},60)`,
    },
  };
}

function shown(labels: readonly string[]): readonly string[] {
  // A guard is put on a line of its own, because a chart with many guards would become too wide to read.
  const lines = labels
    .flatMap((label) => label.split(/ (?=\[)/))
    .filter((line) => line !== "")
    .map(cut);
  return lines.length <= MAX_LINES
    ? lines
    : [...lines.slice(0, MAX_LINES - 1), `and ${lines.length - MAX_LINES + 1} more`];
}

/** Returns the approximate width of a label's line in pixels. Capital letters and underscores are wider. */
const widthOf = (text: string): number => text.length * 5.9 + (text.match(/[A-Z_]/g)?.length ?? 0) * 1.6;

const cut = (text: string): string =>
  text.length <= MAX_LINE_CHARACTERS ? text : `${text.slice(0, MAX_LINE_CHARACTERS - 1)}…`;

function svgOf(chart: ChartModel, laid: ElkNode): SVGSVGElement {
  const { width = 100, height = 100 } = laid;
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img" });
  const words: SVGElement[] = [];
  const boxes = (nodes: readonly ElkNode[] = []): void => {
    for (const node of nodes) {
      const state = chart.states[Number(node.id.slice(1))];
      if (state === undefined) continue;
      const title = titleOf(state, node);
      svg.append(box(state, node, title));
      if (state.children.length > 0) words.push(title);
      boxes(node.children);
    }
  };
  boxes(laid.children);
  for (const edge of laid.edges ?? []) {
    const index = Number(edge.id.slice(1));
    const arrow = chart.arrows[index];
    for (const { startPoint, bendPoints = [], endPoint } of edge.sections ?? []) {
      const points = [startPoint, ...bendPoints, endPoint];
      const d = points.map(({ x, y }, i) => `${i === 0 ? "M" : "L"}${x} ${y}`).join("");
      const kind = arrow?.maybe === true ? "edge maybe" : "edge";
      const line = make("path", { class: kind, d, "data-arrow": index });
      line.append(hint(arrow?.details.join("\n") ?? ""));
      svg.append(line);
      svg.append(tip(points.at(-2) ?? startPoint, endPoint, index));
    }
    for (const { x = 0, y = 0, text = "" } of edge.labels ?? []) {
      const lines = text.split("\n").map((line, i) => {
        const label = make("text", { class: "label", x: x + 2, y: y + 11 + i * 14 });
        label.textContent = line;
        return label;
      });
      const group = make("g", {});
      group.append(hint(arrow?.details.join("\n") ?? ""), ...lines);
      words.push(group);
    }
  }
  // Labels come last, so that no line or box covers them.
  svg.append(...words);
  return svg as SVGSVGElement;
}

function titleOf(state: DrawnState, { x = 0, y = 0, width = 0, height = 0 }: ElkNode): SVGElement {
  const isInside = state.children.length > 0;
  const text = make("text", {
    class: isInside ? "title" : "name",
    x: isInside ? x + 18 : x + width / 2,
    y: isInside ? y + 22 : y + height / 2 + 4.5,
    "text-anchor": isInside ? "start" : "middle",
  });
  text.textContent = cut(state.name);
  return text;
}

function box(
  state: DrawnState,
  { x = 0, y = 0, width = 0, height = 0 }: ElkNode,
  title: SVGElement,
): SVGElement {
  const group = make("g", {
    class: state.kind,
    "data-state": state.index,
    "data-path": state.path.join("/"),
  });
  group.append(make("rect", { class: "box", x, y, width, height, rx: state.kind === "leaf" ? 8 : 5 }));
  if (state.name.length > MAX_LINE_CHARACTERS) group.append(hint(state.name));
  if (state.isInitial) group.append(make("circle", { class: "tip", cx: x + 9, cy: y + 9, r: 3.5 }));
  if (state.children.length === 0) group.append(title);
  return group;
}

function tip(from: { x: number; y: number }, to: { x: number; y: number }, index: number): SVGElement {
  const angle = (Math.atan2(to.y - from.y, to.x - from.x) * 180) / Math.PI;
  return make("path", {
    class: "tip",
    "data-arrow": index,
    d: "M0 0L-8 -4L-8 4Z",
    transform: `translate(${to.x} ${to.y}) rotate(${angle})`,
  });
}

/** Returns a `<title>`, whose text the browser shows when the pointer rests on its parent. */
function hint(text: string): SVGElement {
  const title = make("title", {});
  title.textContent = text;
  return title;
}

function make(name: string, attributes: { readonly [name: string]: string | number }): SVGElement {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  return element;
}

/**
 * Highlights the arrows that runs have taken. The other arrows from a state that a run has left are marked as not
 * taken.
 */
export function highlightTakenArrows(
  svg: SVGElement,
  { chart, taken, left }: ChartWithTakenTransitions,
): void {
  for (const part of svg.querySelectorAll<SVGElement>("[data-arrow]")) {
    const index = Number(part.dataset["arrow"]);
    const from = chart.arrows[index]?.from;
    part.classList.toggle("taken", taken.has(index));
    part.classList.toggle("untaken", from !== undefined && left.has(from) && !taken.has(index));
  }
}
