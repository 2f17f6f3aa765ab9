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
import { actorMessage, eventMessage, snapshotMessage, type MessageStamp } from "./messages.ts";
import type { InspectorPeer } from "./inspector-peer.ts";

/**
 * The number of events that are kept for peers that join later. Snapshots of actors are not kept, because such a peer gets the current
 * state of each actor.
 */
const RECENT = 200;

export interface FeedDeps {
  readonly inspection: ServerInspection;
  readonly clock: Clock;
  /** The server's next message number. */
  readonly nextSeq: () => number;
}

/** A peer, and the only run whose actors it wants to see; null for the actors of all runs. */
export interface Viewer {
  readonly watcher: InspectorPeer;
  readonly run: string | null;
}

/**
 * The feed for all peers that watch the same scope (the same selection of actors). Each message is made once for all of them. The feed ends
 * when the last peer leaves.
 */
export class ScopeFeed implements Inspector {
  readonly #deps: FeedDeps;
  readonly #scope: InspectScope;
  readonly #viewers = new Set<Viewer>();
  readonly #recent: { readonly text: string; readonly actor: InspectedActor }[] = [];
  #stop: (() => void) | null = null;

  constructor(scope: InspectScope, deps: FeedDeps) {
    this.#scope = scope;
    this.#deps = deps;
  }

  /**
   * Adds a peer, and sends it all actors of the scope. `recorded`: actors from storage, which are sent unless the same actors are in
   * memory.
   */
  join(viewer: Viewer, recorded: readonly ActorSnapshot[]): void {
    const found = new Map(recorded.map((one) => [one.actor.id, one]));
    const add = (actor: InspectedActor, state: InspectedState) => void found.set(actor.id, { actor, state });
    // Reads the actors in memory again for each peer, so that they need not be kept for peers that join later.
    this.#deps.inspection.watch(this.#scope, { actor: add, event: () => undefined, snapshot: add })();
    for (const { actor, state } of found.values()) {
      if (!wants(viewer, actor.run)) continue;
      const stamp = this.#stamp();
      viewer.watcher.send(() => this.#actorMessage(actor, state, stamp));
    }
    for (const { text, actor } of this.#recent) {
      // Leaves out the events of an actor that has ended in the meantime: the actor itself was not sent to this peer.
      if (found.has(actor.id) && wants(viewer, actor.run)) viewer.watcher.send(text);
    }
    this.#viewers.add(viewer);
    // Begins to watch. A watch first reports all actors that are in memory. These reports are ignored, because the actors were already sent
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

  /** Removes a peer. Returns true if it was the last one. */
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
    if (this.#recent.length > RECENT) this.#recent.shift();
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
