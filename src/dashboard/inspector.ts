import { applyTheme, chooseNextTheme, readTheme, THEME_SYMBOLS, type Theme } from "./app/stored-theme.ts";
import { stateLabel, type ActiveStateValue } from "./inspector/chart-model.ts";
import { createElementWithText } from "./inspector/text-element.ts";
import { ChartPanel } from "./inspector/chart-panel.ts";
import { FeedForwarder } from "./inspector/feed-forwarder.ts";
import {
  type FeedActor,
  isLiveActor,
  type FeedMessage,
  FeedModel,
  actorLabel,
  actorState,
} from "./inspector/feed-model.ts";
import { EMPTY_THREAD_HISTORY, readThreadHistory, type ThreadHistory } from "./inspector/thread-history.ts";
import { getViewerInfo, openFeed, listLiveThreads } from "./inspector/inspector-requests.ts";
import { Refresher } from "./live/refresher.ts";
import { ApiKeyRequired, isNotFound } from "./api-errors.ts";
import { storeApiKey } from "./requests.ts";

const $ = (selector: string): HTMLElement => document.querySelector(selector) as HTMLElement;
const field = (selector: string): HTMLInputElement => $(selector) as HTMLInputElement;

const query = new URLSearchParams(location.search);
const watched = new URLSearchParams(
  [...query].filter(([name]) => ["thread_id", "run_id", "values"].includes(name)),
);
const isWatching = watched.has("thread_id") || watched.has("run_id");

const model = new FeedModel();
const figures = new ChartPanel($("#charts"), $("#wide"), () => soon());
let chosen: string | null = null;
let handover: FeedForwarder | null = null;
let due = false;
/** The stored history of the watched thread. It is read again after each change of the thread. */
let past = EMPTY_THREAD_HISTORY;
let refresher: Refresher<ThreadHistory> | undefined;

const showStatus = (text: string): void => {
  $("#status").textContent = text;
};

const thread = watched.get("thread_id");
if (thread !== null) ($("#board") as HTMLAnchorElement).href = `./#/threads/${encodeURIComponent(thread)}`;

function showTheme(theme: Theme): void {
  $("#theme").textContent = THEME_SYMBOLS[theme];
  $("#theme").ariaLabel = `Theme: ${theme}. Change theme`;
}
applyTheme(readTheme());
showTheme(readTheme());
$("#theme").addEventListener("click", () => showTheme(chooseNextTheme(readTheme())));

// --- rendering ---

/** Renders the page in the next animation frame, once even if this is called several times before. */
function soon(): void {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    showActors();
    showCharts();
    showSteps();
    showFailure();
  });
}

function recall(): void {
  const thread = watched.get("thread_id");
  if (thread === null) return;
  if (refresher !== undefined) return refresher.request();
  refresher = new Refresher({
    read: () => readThreadHistory(thread),
    take: (found) => {
      past = found;
      soon();
    },
    // Other errors are not shown: the page keeps the previous data until a later read succeeds.
    onError: (cause) => {
      if (isNotFound(cause)) missing();
    },
  });
}

/** Replaces the page's content by a message that the thread does not exist. */
function missing(): void {
  for (const part of ["#actors", "#log", "#hand"]) $(part).hidden = true;
  $("#missing").hidden = false;
}

function showFailure(): void {
  $("#failure").hidden = past.error === null;
  $("#failure").textContent = past.error === null ? "" : `${past.error.error}: ${past.error.message}`;
}

function showActors(): void {
  const list = $("#actors > ul");
  const focused = (document.activeElement as HTMLElement | null)?.dataset["actor"];
  list.replaceChildren(...model.childrenOf(null).map(rowOf));
  if (focused !== undefined)
    list.querySelector<HTMLElement>(`[data-actor="${CSS.escape(focused)}"]`)?.focus();
}

function rowOf(actor: FeedActor): HTMLElement {
  const row = document.createElement("li");
  const button = document.createElement("button");
  button.type = "button";
  button.dataset["actor"] = actor.id;
  button.className = isLiveActor(actor) ? "lives" : "";
  button.title = actor.id;
  button.setAttribute("aria-pressed", String(actor.id === chosen));
  button.append(
    createElementWithText("span", actorLabel(actor)),
    createElementWithText("span", actorState(actor), "state"),
  );
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

/** Shows up to four charts: of the actor that the user has chosen, the latest graph, the latest run, and the thread. */
function showCharts(): void {
  const shown = [
    ["chosen", chosen === null ? undefined : model.actors.get(chosen)],
    ["graph", model.latest("graph")],
    ["run", model.latest("run")],
    ["thread", model.latest("thread")],
  ] as const;
  for (const [slot, actor] of shown) {
    if (actor === undefined || (slot !== "chosen" && actor.id === chosen)) figures.drop(slot);
    else figures.show(slot, actor, actor === model.latest("graph") ? [past.path] : []);
  }
}

/** Lists the steps of the feed, newest first, and below them the stored steps from before the feed began. */
function showSteps(): void {
  const since = model.steps[0]?.at ?? Number.POSITIVE_INFINITY;
  const steps = [...past.steps.filter(({ at }) => at < since), ...model.steps];
  $("#log .none").hidden = steps.length > 0;
  $("#log > ol").replaceChildren(
    ...steps.toReversed().map(({ at, actor, event, words }) => {
      const item = document.createElement("li");
      item.append(
        createElementWithText("time", new Date(at).toLocaleTimeString()),
        `${actor}: ${short(event)} → ${words}`,
      );
      return item;
    }),
  );
}

/** Shortens each UUID in a text to its first 8 characters. */
const short = (event: string): string => event.replaceAll(/([0-9a-f]{8})-[0-9a-f-]{27}/g, "$1…");

// --- requests ---

async function watch(again = 0): Promise<void> {
  $("#actors").hidden = $("#log").hidden = false;
  const socket = await openFeed(watched);
  socket.addEventListener("open", () => {
    // After each new connection, the server announces all live actors again.
    model.clear();
    showStatus("Connected.");
    again = 0;
    recall();
  });
  socket.addEventListener("message", ({ data }) => {
    const message = JSON.parse(data as string) as FeedMessage;
    model.take(message);
    handover?.send(message);
    if (message.type !== "@xstate.event" && message.kind !== "task") recall();
    soon();
  });
  socket.addEventListener("close", ({ code, reason }) => {
    if (code === 4401) return start();
    // Codes from 4000 mean that the server refuses this feed, so connecting again would not help.
    if (code >= 4000) {
      missing();
      return showStatus(reason);
    }
    showStatus(`Not connected${reason === "" ? "" : `: ${reason}`}; trying again…`);
    setTimeout(() => attempt(() => watch(again + 1)), Math.min(500 * 2 ** again, 10_000));
  });
}

async function list(): Promise<void> {
  const threads = await listLiveThreads();
  $("#threads").hidden = false;
  $("#threads .none").hidden = threads.length > 0;
  const rows = threads.map(({ id, value, runs }) => {
    const row = document.createElement("li");
    const link = document.createElement("a");
    link.href = `inspector?thread_id=${id}`;
    link.textContent = id;
    row.className = runs > 0 ? "lives" : "";
    row.append(link, " ", createElementWithText("span", stateLabel(value as ActiveStateValue), "state"));
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
    if (cause instanceof ApiKeyRequired) {
      $("#key").hidden = false;
      $("#secret").focus();
      return showStatus("An API key or user token is required.");
    }
    showStatus(cause instanceof Error ? cause.message : String(cause));
    setTimeout(() => attempt(work), 5_000);
  });
}

function start(): void {
  attempt(async () => {
    const { viewer, values } = await getViewerInfo();
    $("#key").hidden = true;
    if (!isWatching) return list();
    if (handover === null) {
      handover = new FeedForwarder(viewer, model, showStatus);
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
  storeApiKey(field("#secret").value);
  start();
});
$("#hand").addEventListener("click", () => ($("#consent") as HTMLDialogElement).showModal());
$("#agree").addEventListener("click", () => handover?.open());
start();
