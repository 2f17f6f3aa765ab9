import {
  type ChartModel,
  buildChart,
  type ChartDefinition,
  activeNodesText,
  type ActiveStateValue,
  stateLabel,
} from "./chart-model.ts";

/** A message of the inspector's feed, in the format of `@statelyai/inspect`. */
export interface FeedMessage {
  readonly type: "@xstate.actor" | "@xstate.event" | "@xstate.snapshot";
  readonly sessionId: string;
  readonly createdAt: string;
  readonly seq: number;
  readonly kind: "thread" | "run" | "task" | "graph";
  readonly name?: string;
  readonly parentId?: string;
  readonly definition?: string;
  readonly run_id?: string;
  readonly event?: { readonly type: string };
  readonly snapshot?: {
    readonly value?: ActiveStateValue;
    readonly status: string;
    readonly tags?: readonly string[];
  };
}

export interface FeedActor {
  readonly id: string;
  readonly kind: FeedMessage["kind"];
  readonly name: string;
  readonly parent: string | null;
  readonly definition: string;
  readonly chart: ChartModel;
  /** The message that announced the actor, updated with the actor's latest snapshot. */
  readonly message: FeedMessage;
}

export interface RecordedTransition {
  readonly seq: number;
  readonly at: number;
  readonly actor: string;
  readonly kind: FeedMessage["kind"];
  readonly event: string;
  readonly words: string;
}

/** The largest number of ended actors that are kept. Thread actors do not count. */
const MAX_ENDED_ACTORS = 60;
/** The largest number of transitions that are kept. */
const MAX_TRANSITIONS = 100;
/** The largest number of events that are kept, to be sent to a viewer that connects late. */
const MAX_EVENTS = 200;

/** The actors, transitions and events that the feed has reported so far. */
export class FeedModel {
  readonly actors = new Map<string, FeedActor>();
  /** The latest transitions of all actors, oldest first. */
  readonly steps: RecordedTransition[] = [];
  readonly events: FeedMessage[] = [];
  readonly #charts = new Map<string, ChartModel>();

  take(message: FeedMessage): void {
    if (message.type === "@xstate.actor") this.#meet(message);
    const actor = this.actors.get(message.sessionId);
    if (actor === undefined) return;
    if (message.type === "@xstate.event") {
      this.events.push(message);
      if (this.events.length > MAX_EVENTS) this.events.shift();
      return;
    }
    const { snapshot } = message;
    if (message.type === "@xstate.snapshot" && snapshot !== undefined) {
      const before = actor.message.snapshot?.value;
      this.actors.set(actor.id, { ...actor, message: { ...actor.message, snapshot } });
      if (JSON.stringify(before) !== JSON.stringify(snapshot.value)) this.#step(actor, message);
    }
  }

  clear(): void {
    this.actors.clear();
    this.events.length = 0;
  }

  /** Returns the latest actor of a kind, except for the graph actors of subgraphs. */
  latest(kind: FeedMessage["kind"]): FeedActor | undefined {
    return [...this.actors.values()].findLast(
      (actor) => actor.kind === kind && !actor.id.startsWith("subgraph:"),
    );
  }

  childrenOf(id: string | null): readonly FeedActor[] {
    return [...this.actors.values()].filter(({ parent }) => parent === id);
  }

  #meet(message: FeedMessage): void {
    const { sessionId: id, kind, name = "", parentId, definition = "{}" } = message;
    let chart = this.#charts.get(definition);
    if (chart === undefined) {
      chart = buildChart(JSON.parse(definition) as ChartDefinition);
      this.#charts.set(definition, chart);
    }
    // An announced actor is moved to the end of the map, so that {@link FeedModel.latest} finds it.
    if (kind !== "thread") this.actors.delete(id);
    this.actors.set(id, { id, kind, name, parent: parentId ?? null, definition, chart, message });
    const ended = [...this.actors.values()].filter((actor) => actor.kind !== "thread" && !isLiveActor(actor));
    for (const { id: old } of ended.slice(0, Math.max(0, ended.length - MAX_ENDED_ACTORS)))
      this.actors.delete(old);
  }

  #step(actor: FeedActor, message: FeedMessage): void {
    const { seq, createdAt, event } = message;
    this.steps.push({
      seq,
      at: Number(createdAt),
      actor: actorLabel(actor),
      kind: actor.kind,
      event: event?.type ?? "",
      words: actorState({ ...actor, message }),
    });
    if (this.steps.length > MAX_TRANSITIONS) this.steps.shift();
  }
}

export const isLiveActor = ({ message }: FeedActor): boolean => message.snapshot?.status === "active";

export const actorLabel = ({ kind, name }: FeedActor): string =>
  kind === "task" || kind === "graph" ? `${kind} ${name}` : kind;

/** Returns the state of an actor as text: the active nodes of a graph, or the state value. */
export function actorState({ kind, chart, message }: FeedActor): string {
  const value = message.snapshot?.value;
  return kind === "graph" ? activeNodesText(chart, value) : stateLabel(value);
}
