import { eventName } from "../codec/sse.ts";
import { type Fact, slots } from "../model/event.ts";
import { pick, type JsonObject } from "../model/json.ts";
import type { StreamMode } from "../model/run.ts";
import { blankMessage, messageMeta, type MessageHead, type RunSource } from "./source.ts";

type Kind = Fact["t"];
type FactOf<T extends Kind> = Extract<Fact, { t: T }>;
type Slot<T extends Kind> = (typeof slots)[T][number];

/** A checkpoint whose state an event shows. */
export interface StateRef {
  readonly ns: string;
  readonly checkpoint: string;
}

/** Where a renderer puts its event, and what it may ask meanwhile. */
export interface Page {
  readonly source: RunSource;
  readonly subgraphs: boolean;
  /** The state that the renderer's `state` named; null where it is not stored. */
  readonly state: JsonObject | null;
  /** The streamed message whose fact has this id. */
  head(id: number): MessageHead;
  /** `data` is JSON text on one line. */
  put(id: number, event: string, data: string): void;
}

/** How one slot of one kind of fact becomes an event; a renderer that puts nothing has none to show. */
export interface SlotRenderer<T extends Kind> {
  /** The state it needs, when it does. */
  state?(fact: FactOf<T>, subgraphs: boolean): StateRef | undefined;
  put(fact: FactOf<T>, id: number, page: Page): void;
}

export type ModeTable = {
  readonly [T in Kind]: { readonly [S in Slot<T>]?: SlotRenderer<T> };
};

/** A fact of a subgraph is shown to those who asked for subgraphs. */
const shows = (ns: string, subgraphs: boolean) => ns === "" || subgraphs;

const named = (event: string, ns: string) => (ns === "" ? event : eventName(`${event}|${ns}`));

/** How clients are told, beside an update, that the node did not run for it. */
const CACHED = ',"__metadata__":{"cached":true}';

const json = (value: unknown): string => JSON.stringify(value) ?? "null";

/** The part of a state that its graph gives out. */
function shown(state: JsonObject | null, output: readonly string[] | undefined): JsonObject | null {
  return state === null || output === undefined ? state : pick(state, output);
}

/** Tokens are shown whether or not subgraphs were asked for; the name says where from only to those who did. */
function messagesName(ns: string, meta: JsonObject, subgraphs: boolean): string {
  if (ns === "" || !subgraphs) return "messages";
  const leaf = meta["langgraph_checkpoint_ns"];
  return named("messages", typeof leaf === "string" && leaf !== "" ? leaf : ns);
}

/**
 * Every event of every stream mode, by the kind of fact and its slot: to serve another mode is to add its entries here.
 * `messages-tuple` is what clients ask for; the events are named `messages`.
 */
export const table: ModeTable = {
  start: {
    metadata: {
      put({ attempt }, id, page) {
        const { run_id, thread_id } = page.source.run;
        page.put(id, "metadata", json({ run_id, attempt, thread_id }));
      },
    },
  },
  checkpoint: {
    values: {
      state: (fact, subgraphs) =>
        fact.input || !shows(fact.ns, subgraphs) ? undefined : { ns: fact.ns, checkpoint: fact.id },
      put(fact, id, page) {
        if (fact.input || page.state === null || !shows(fact.ns, page.subgraphs)) return;
        page.put(id, named("values", fact.ns), json(shown(page.state, fact.output)));
      },
    },
  },
  task: {},
  result: {
    updates: {
      put(fact, id, page) {
        if (!shows(fact.ns, page.subgraphs) || fact.error !== undefined) return;
        // A node that waits at an interrupt has not returned anything.
        if (fact.update === undefined && fact.interrupts.length > 0) return;
        page.put(
          id,
          named("updates", fact.ns),
          `{${json(fact.name)}:${json(fact.update)}${fact.cached ? CACHED : ""}}`,
        );
      },
    },
  },
  interrupt: {
    updates: {
      put(fact, id, page) {
        if (!shows(fact.ns, page.subgraphs)) return;
        page.put(id, named("updates", fact.ns), json({ __interrupt__: fact.interrupts }));
      },
    },
    values: {
      state: (fact, subgraphs) => (shows(fact.ns, subgraphs) ? fact : undefined),
      put(fact, id, page) {
        if (!shows(fact.ns, page.subgraphs)) return;
        page.put(
          id,
          named("values", fact.ns),
          json({ ...shown(page.state, fact.output), __interrupt__: fact.interrupts }),
        );
      },
    },
  },
  custom: {
    custom: {
      put(fact, id, page) {
        if (shows(fact.ns, page.subgraphs)) page.put(id, named("custom", fact.ns), json(fact.data));
      },
    },
  },
  message: {},
  token: {
    "messages-tuple": {
      put({ m, text }, id, page) {
        const { fact, before, after } = page.head(m);
        const event = fact.ns === "" ? "messages" : messagesName(fact.ns, fact.meta, page.subgraphs);
        page.put(id, event, before + JSON.stringify(text) + after);
      },
    },
  },
  piece: {
    "messages-tuple": {
      put({ m, chunk }, id, page) {
        const { fact } = page.head(m);
        const own = { id: fact.id, type: "ai", example: false, name: fact.name };
        const message = { content: "", ...blankMessage, ...chunk, ...own };
        const event = messagesName(fact.ns, fact.meta, page.subgraphs);
        page.put(id, event, json([message, messageMeta(page.source.run, fact.meta)]));
      },
    },
  },
  complete: {
    "messages-tuple": {
      put(fact, id, page) {
        // Its tokens have been shown already.
        if (fact.streamed) return;
        const event = messagesName(fact.ns, fact.meta, page.subgraphs);
        page.put(id, event, json([fact.message, messageMeta(page.source.run, fact.meta)]));
      },
    },
  },
  error: {
    error: {
      put: ({ error }, id, page) =>
        page.put(id, "error", json({ error: error.error, message: error.message })),
    },
  },
};

/** Events that every reader gets, whatever modes it asked for. */
const control: ReadonlySet<string> = new Set(["metadata", "error"]);

/** The slots that the table has something to show for: modes, and the control events. */
export const rendered: ReadonlySet<string> = new Set(Object.values(table).flatMap((row) => Object.keys(row)));

/** The renderers that a view needs of one kind of fact, by slot. */
export type Row = readonly (SlotRenderer<Kind> | undefined)[];

/** The part of the table that these modes show. A kind of which they show nothing has no row. */
export function rowsOf(modes: readonly StreamMode[]): Readonly<Record<Kind, Row | undefined>> {
  const wanted = new Set<string>(modes);
  const rows: Partial<Record<Kind, Row>> = {};
  for (const kind of Object.keys(slots) as Kind[]) {
    const renderers = table[kind] as Readonly<Record<string, SlotRenderer<Kind>>>;
    const row = slots[kind].map((slot) =>
      wanted.has(slot) || control.has(slot) ? renderers[slot] : undefined,
    );
    if (row.some((renderer) => renderer !== undefined)) rows[kind] = row;
  }
  return rows as Record<Kind, Row | undefined>;
}

/** Kinds that name a streamed message. */
export const namesMessage = (fact: Fact): fact is FactOf<"token"> | FactOf<"piece"> =>
  fact.t === "token" || fact.t === "piece";
