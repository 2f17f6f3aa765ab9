import { litBy, nodesOf, wordsOf, type Value } from "./inspector/chart.ts";
import { Drawing } from "./inspector/draw.ts";
import { Handover } from "./inspector/handover.ts";
import { type Actor, isLive, type Message, Model } from "./inspector/model.ts";
import { about, connect, live } from "./inspector/server.ts";
import { enter, KeyNeeded } from "./server.ts";

const $ = (selector: string): HTMLElement => document.querySelector(selector) as HTMLElement;
const field = (selector: string): HTMLInputElement => $(selector) as HTMLInputElement;

const query = new URLSearchParams(location.search);
const watched = new URLSearchParams(
  [...query].filter(([name]) => ["thread_id", "run_id", "values"].includes(name)),
);
const isWatching = watched.has("thread_id") || watched.has("run_id");

const model = new Model();
const drawing = new Drawing("inspector/elk-worker.js");
const figures = new Map<string, Figure>();
let chosen: string | null = null;
let handover: Handover | null = null;
let due = false;

const say = (text: string): void => {
  $("#status").textContent = text;
};

/** A chart on the page, of whichever actor stands there. */
interface Figure {
  readonly element: HTMLElement;
  definition: string;
  svg: SVGSVGElement | null;
}

// --- what is seen ---

/** Shows what has been told, once for all that comes in one go. */
function soon(): void {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    showActors();
    showCharts();
    showSteps();
  });
}

function showActors(): void {
  const list = $("#actors > ul");
  const focused = (document.activeElement as HTMLElement | null)?.dataset["actor"];
  list.replaceChildren(...model.childrenOf(null).map(rowOf));
  if (focused !== undefined)
    list.querySelector<HTMLElement>(`[data-actor="${CSS.escape(focused)}"]`)?.focus();
}

function rowOf(actor: Actor): HTMLElement {
  const row = document.createElement("li");
  const button = document.createElement("button");
  button.type = "button";
  button.dataset["actor"] = actor.id;
  button.className = isLive(actor) ? "lives" : "";
  button.title = actor.id;
  button.setAttribute("aria-pressed", String(actor.id === chosen));
  button.append(text("span", nameOf(actor)), text("span", said(actor), "state"));
  button.addEventListener("click", () => {
    chosen = chosen === actor.id ? null : actor.id;
    soon();
  });
  row.append(button);
  const children = model.childrenOf(actor.id);
  if (children.length > 0) {
    const inner = document.createElement("ul");
    inner.append(...children.map(rowOf));
    row.append(inner);
  }
  return row;
}

const nameOf = ({ kind, name }: Actor): string =>
  kind === "task" || kind === "graph" ? `${kind} ${name}` : kind;

/** How an actor stands, in words. */
function said({ kind, chart, message }: Actor): string {
  const value = message.snapshot?.value;
  return kind === "graph" ? nodesOf(chart, value) : wordsOf(value);
}

/** The chosen actor, then the latest graph, its run, and the thread. */
function showCharts(): void {
  const shown = [
    chosen === null ? undefined : model.actors.get(chosen),
    model.latest("graph"),
    model.latest("run"),
    model.latest("thread"),
  ];
  const slots = ["chosen", "graph", "run", "thread"];
  slots.forEach((slot, i) => {
    const actor = shown[i];
    if (actor === undefined || (i > 0 && actor.id === chosen)) return drop(slot);
    const figure = figures.get(slot) ?? add(slot, slots);
    show(figure, actor);
  });
}

function drop(slot: string): void {
  figures.get(slot)?.element.remove();
  figures.delete(slot);
}

function add(slot: string, slots: readonly string[]): Figure {
  const element = document.createElement("figure");
  element.dataset["slot"] = slot;
  const scroll = document.createElement("div");
  scroll.className = "scroll";
  scroll.tabIndex = 0;
  element.append(document.createElement("figcaption"), scroll);
  const after = slots.slice(slots.indexOf(slot) + 1).map((name) => figures.get(name)?.element);
  $("#charts").insertBefore(element, after.find((one) => one !== undefined) ?? null);
  const figure: Figure = { element, definition: "", svg: null };
  figures.set(slot, figure);
  return figure;
}

function show(figure: Figure, actor: Actor): void {
  const { element } = figure;
  const { tags = [], status } = actor.message.snapshot ?? {};
  const words = said(actor);
  const says = tags.length === 0 ? words : `${words} (${tags.join(", ")})`;
  element
    .querySelector("figcaption")
    ?.replaceChildren(text("strong", nameOf(actor)), text("span", says, "state"));
  const failed = status === "error" || words === "error" || words === "failed" || words === "timeout";
  element.classList.toggle("failed", failed);
  element.classList.toggle("stuck", !failed && (tags.length > 0 || words === "interrupted"));
  element.dataset["actor"] = actor.id;
  if (figure.definition !== actor.definition) {
    figure.definition = actor.definition;
    drawing.draw(actor.chart, actor.definition).then(
      (svg) => {
        if (figure.definition !== actor.definition) return;
        figure.svg = svg;
        element.querySelector(".scroll")?.replaceChildren(svg);
        soon();
      },
      (cause: unknown) => say(`The chart could not be drawn: ${String(cause)}`),
    );
  }
  if (figure.svg !== null) light(figure.svg, actor, `${nameOf(actor)}: ${says}`);
}

function light(svg: SVGSVGElement, { chart, message }: Actor, label: string): void {
  const lit = litBy(chart, message.snapshot?.value);
  for (const group of svg.querySelectorAll<SVGElement>("[data-state]")) {
    group.classList.toggle("lit", lit.has(Number(group.dataset["state"])));
  }
  svg.setAttribute("aria-label", label);
}

function showSteps(): void {
  $("#log > ol").replaceChildren(
    ...model.steps.toReversed().map(({ at, actor, event, words }) => {
      const item = document.createElement("li");
      item.append(text("time", new Date(at).toLocaleTimeString()), `${actor}: ${short(event)} → ${words}`);
      return item;
    }),
  );
}

/** Ids by their first characters: they are told in full by who has them. */
const short = (event: string): string => event.replaceAll(/([0-9a-f]{8})-[0-9a-f-]{27}/g, "$1…");

function text(tag: string, content: string, className = ""): HTMLElement {
  const element = document.createElement(tag);
  element.textContent = content;
  element.className = className;
  return element;
}

// --- what is asked ---

async function watch(again = 0): Promise<void> {
  $("#actors").hidden = $("#log").hidden = false;
  const socket = await connect(watched);
  socket.addEventListener("open", () => {
    // Everybody who lives is told anew.
    model.clear();
    say("Watching.");
    again = 0;
  });
  socket.addEventListener("message", ({ data }) => {
    const message = JSON.parse(data as string) as Message;
    model.take(message);
    handover?.send(message);
    soon();
  });
  socket.addEventListener("close", ({ code, reason }) => {
    if (code === 4401) return start();
    // What is refused now is refused again.
    if (code >= 4000) return say(reason);
    say(`Not connected${reason === "" ? "" : `: ${reason}`}; trying again…`);
    setTimeout(() => attempt(() => watch(again + 1)), Math.min(500 * 2 ** again, 10_000));
  });
}

async function list(): Promise<void> {
  const threads = await live();
  $("#threads").hidden = false;
  $("#threads .none").hidden = threads.length > 0;
  const rows = threads.map(({ id, value, runs }) => {
    const row = document.createElement("li");
    const link = document.createElement("a");
    link.href = `inspector?thread_id=${id}`;
    link.textContent = id;
    row.className = runs > 0 ? "lives" : "";
    row.append(link, " ", text("span", wordsOf(value as Value), "state"));
    return row;
  });
  const focused = (document.activeElement as HTMLAnchorElement | null)?.href;
  $("#threads > ul").replaceChildren(...rows);
  if (focused !== undefined)
    rows
      .find((row) => row.querySelector("a")?.href === focused)
      ?.querySelector("a")
      ?.focus();
  setTimeout(() => attempt(list), 2_000);
}

function attempt(work: () => Promise<void>): void {
  work().catch((cause: unknown) => {
    if (cause instanceof KeyNeeded) {
      $("#key").hidden = false;
      $("#secret").focus();
      return say("A key is needed.");
    }
    say(cause instanceof Error ? cause.message : String(cause));
    setTimeout(() => attempt(work), 5_000);
  });
}

function start(): void {
  attempt(async () => {
    const { viewer, values } = await about();
    $("#key").hidden = true;
    if (!isWatching) return list();
    if (handover === null) {
      handover = new Handover(viewer, model, say);
      $("#viewer").textContent = handover.viewer;
      $("#with-values").hidden = !(values && watched.get("values") === "1");
      $("#hand").hidden = false;
    }
    return watch();
  });
}

$("#choose").addEventListener("submit", (event) => {
  event.preventDefault();
  const id = field("#thread").value.trim();
  location.search = id === "" ? "" : `?thread_id=${encodeURIComponent(id)}`;
});
field("#thread").value = query.get("thread_id") ?? "";
$("#key").addEventListener("submit", (event) => {
  event.preventDefault();
  enter(field("#secret").value);
  start();
});
$("#hand").addEventListener("click", () => ($("#consent") as HTMLDialogElement).showModal());
$("#agree").addEventListener("click", () => handover?.open());
start();
