import type { Clock } from "../../ports/clock.ts";
import type {
  Inspector,
  InspectScope,
  ActorSnapshot,
  InspectedActor,
  InspectedEvent,
  InspectedState,
} from "../../ports/inspector.ts";
import type { ServerInspection } from "../../service/actor-inspection.ts";
import { actorMessage, eventMessage, snapshotMessage, type MessageStamp } from "./inspector-messages.ts";
import type { InspectorPeer } from "./inspector-peer.ts";

/**
 * The number of event messages that are kept for peers that join later. Snapshot messages are not kept, because a new peer gets the current
 * state of each actor.
 */
const MAX_RECENT_EVENTS = 200;

export interface ScopeFeedDeps {
  readonly inspection: ServerInspection;
  readonly clock: Clock;
  /** Returns the number of the next inspector message of this process. */
  readonly nextSeq: () => number;
}

/** A peer of a feed, and what it wants to see. */
export interface Viewer {
  readonly watcher: InspectorPeer;
  /** The run whose actors, and those that belong to no run, the peer wants to see; null: the actors of all runs. */
  readonly run: string | null;
}

/**
 * The feed for all peers that watch the same {@link InspectScope}, that is, the same selection of actors. Each message is created once for
 * all of these peers. The feed stops watching when the last peer leaves.
 */
export class ScopeFeed implements Inspector {
  readonly #deps: ScopeFeedDeps;
  readonly #scope: InspectScope;
  readonly #viewers = new Set<Viewer>();
  readonly #recent: { readonly text: string; readonly actor: InspectedActor }[] = [];
  #stop: (() => void) | null = null;

  constructor(scope: InspectScope, deps: ScopeFeedDeps) {
    this.#scope = scope;
    this.#deps = deps;
  }

  /**
   * Adds a peer, and sends it all actors of the scope. `recorded`: actors from storage. An actor that is also in memory is sent with its
   * state in memory.
   */
  join(viewer: Viewer, recorded: readonly ActorSnapshot[]): void {
    const found = new Map(recorded.map((one) => [one.actor.id, one]));
    const add = (actor: InspectedActor, state: InspectedState) => void found.set(actor.id, { actor, state });
    // The actors in memory are read anew for each peer, so that their states need not be kept for peers that join later. The watch is
    // stopped at once.
    this.#deps.inspection.watch(this.#scope, { actor: add, event: () => undefined, snapshot: add })();
    for (const { actor, state } of found.values()) {
      if (!wants(viewer, actor.run)) continue;
      const stamp = this.#stamp();
      viewer.watcher.send(() => this.#actorMessage(actor, state, stamp));
    }
    for (const { text, actor } of this.#recent) {
      // Leaves out events of an actor that has ended since, because this peer was not sent that actor.
      if (found.has(actor.id) && wants(viewer, actor.run)) viewer.watcher.send(text);
    }
    this.#viewers.add(viewer);
    // A new watch first reports all actors that are in memory. These reports are ignored (`telling` is false), because the actors were sent
    // above.
    if (this.#stop === null) {
      let telling = false;
      const news: Inspector = {
        actor: (actor, state) => telling && this.actor(actor, state),
        event: (actor, event, source) => this.event(actor, event, source),
        snapshot: (actor, state, event) => this.snapshot(actor, state, event),
      };
      this.#stop = this.#deps.inspection.watch(this.#scope, news);
      telling = true;
    }
  }

  /** Removes a peer. Returns true if no peer is left. */
  leave(viewer: Viewer): boolean {
    this.#viewers.delete(viewer);
    if (this.#viewers.size > 0) return false;
    this.#stop?.();
    this.#stop = null;
    return true;
  }

  actor(actor: InspectedActor, state: InspectedState): void {
    this.#send(this.#actorMessage(actor, state, this.#stamp()), actor.run);
  }

  event(actor: InspectedActor, event: InspectedEvent, source: string | null): void {
    const text = eventMessage(actor, event, source, this.#stamp());
    this.#recent.push({ text, actor });
    if (this.#recent.length > MAX_RECENT_EVENTS) this.#recent.shift();
    this.#send(text, actor.run);
  }

  snapshot(actor: InspectedActor, state: InspectedState, event: InspectedEvent): void {
    this.#send(snapshotMessage(actor, state, event, this.#stamp()), actor.run);
  }

  #actorMessage(actor: InspectedActor, state: InspectedState, stamp: MessageStamp): string {
    const definition = this.#deps.inspection.machine(actor.machine)?.text ?? `{"id":"${actor.kind}"}`;
    return actorMessage(actor, state, definition, stamp);
  }

  #send(text: string, run: string | null): void {
    for (const viewer of this.#viewers) if (wants(viewer, run)) viewer.watcher.send(text);
  }

  #stamp(): MessageStamp {
    return { seq: this.#deps.nextSeq(), at: this.#deps.clock.now() };
  }
}

const wants = (viewer: Viewer, run: string | null): boolean =>
  viewer.run === null || run === null || run === viewer.run;
