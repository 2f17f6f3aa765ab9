import { activeStateIndexes } from "./chart-model.ts";
import { ChartRenderer, highlightTakenArrows } from "./chart-drawing.ts";
import { createElementWithText } from "./text-element.ts";
import { type FeedActor, actorLabel, actorState } from "./feed-model.ts";
import { addedArrowsKey, markTakenTransitions, type TakenPath } from "./taken-transitions.ts";
import { ChartZoom } from "./chart-zoom.ts";

/** The places for charts on the page, in their order. */
const SLOTS = ["chosen", "graph", "run", "thread"] as const;
export type ChartSlotKey = (typeof SLOTS)[number];

/** A chart on the page, in one of the {@link SLOTS}. The actor in it may change. */
interface ChartSlot {
  readonly element: HTMLElement;
  readonly zoom: ChartZoom;
  /**
   * Identifies the drawn chart: the actor's definition, and the arrows added to it. Empty if the chart must be drawn.
   */
  definition: string;
  svg: SVGSVGElement | null;
}

/** The charts of the inspector, in which the active states of the actors are highlighted. */
export class ChartPanel {
  readonly #root: HTMLElement;
  readonly #wide: HTMLElement;
  readonly #render: () => void;
  readonly #drawing = new ChartRenderer("inspector/elk-worker.js");
  readonly #figures = new Map<ChartSlotKey, ChartSlot>();

  /**
   * `wide`: the element for the thread's chart, which needs more space than the other charts. `render`: called when a
   * chart has been drawn, or when the user retries; MUST call {@link ChartPanel.show} again for each chart.
   */
  constructor(root: HTMLElement, wide: HTMLElement, render: () => void) {
    this.#root = root;
    this.#wide = wide;
    this.#render = render;
  }

  drop(slot: ChartSlotKey): void {
    this.#figures.get(slot)?.zoom.close();
    this.#figures.get(slot)?.element.remove();
    this.#figures.delete(slot);
  }

  /** Shows an actor's chart in a slot. `ways`: the paths that runs have taken through the graph. */
  show(slot: ChartSlotKey, actor: FeedActor, ways: readonly TakenPath[]): void {
    const figure = this.#figures.get(slot) ?? this.#add(slot);
    const { element } = figure;
    const { tags = [] } = actor.message.snapshot ?? {};
    const words = actorState(actor);
    const says = tags.length === 0 ? words : `${words} (${tags.join(", ")})`;
    element
      .querySelector("figcaption")
      ?.replaceChildren(
        createElementWithText("strong", actorLabel(actor)),
        createElementWithText("span", says, "state"),
      );
    element.dataset["actor"] = actor.id;
    const gone = markTakenTransitions(actor.chart, ways);
    const definition = `${actor.definition} ${addedArrowsKey(gone.chart, actor.chart)}`;
    if (figure.definition !== definition) {
      figure.definition = definition;
      this.#drawing.draw(gone.chart, definition).then(
        (svg) => {
          if (figure.definition !== definition) return;
          figure.svg = svg;
          element.querySelector(".scroll")?.replaceChildren(svg);
          this.#render();
        },
        (cause: unknown) => {
          if (figure.definition === definition) this.#showFailure(figure, cause);
        },
      );
    }
    if (figure.svg === null) return;
    highlightStates(figure.svg, actor, `${actorLabel(actor)}: ${says}`);
    highlightTakenArrows(figure.svg, gone);
    figure.zoom.show();
  }

  #showFailure(figure: ChartSlot, cause: unknown): void {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const again = createElementWithText("button", "Try again");
    again.addEventListener("click", () => {
      figure.definition = "";
      this.#render();
    });
    const text = createElementWithText("p", `The chart could not be drawn: ${reason}`);
    text.role = "alert";
    figure.svg = null;
    figure.element.querySelector(".scroll")?.replaceChildren(text, again);
  }

  #add(slot: ChartSlotKey): ChartSlot {
    const element = document.createElement("figure");
    element.dataset["slot"] = slot;
    const scroll = document.createElement("div");
    scroll.className = "scroll";
    scroll.tabIndex = 0;
    scroll.append(createElementWithText("p", "Drawing…", "state"));
    const zoom = new ChartZoom(scroll);
    const head = document.createElement("div");
    head.className = "bar";
    head.append(document.createElement("figcaption"), zoom.bar);
    element.append(head, scroll);
    const root = slot === "thread" ? this.#wide : this.#root;
    const after = SLOTS.slice(SLOTS.indexOf(slot) + 1).map((name) => this.#figures.get(name)?.element);
    root.insertBefore(element, after.find((one) => one?.parentElement === root) ?? null);
    const figure: ChartSlot = { element, zoom, definition: "", svg: null };
    this.#figures.set(slot, figure);
    return figure;
  }
}

const MARKS = ["running", "interrupted", "failed"] as const;

/** Returns the CSS class for the active states of an actor. */
function markOf(actor: FeedActor): (typeof MARKS)[number] {
  const { tags = [], status } = actor.message.snapshot ?? {};
  const words = actorState(actor);
  if (status === "error" || tags.includes("failed") || ["error", "failed", "timeout"].includes(words))
    return "failed";
  return tags.length > 0 || words === "interrupted" ? "interrupted" : "running";
}

function highlightStates(svg: SVGSVGElement, actor: FeedActor, label: string): void {
  const lit = activeStateIndexes(actor.chart, actor.message.snapshot?.value);
  const mark = markOf(actor);
  for (const group of svg.querySelectorAll<SVGElement>("[data-state]")) {
    const isLit = lit.has(Number(group.dataset["state"]));
    group.classList.toggle("lit", isLit);
    for (const one of MARKS) group.classList.toggle(one, isLit && one === mark);
  }
  svg.setAttribute("aria-label", label);
}
