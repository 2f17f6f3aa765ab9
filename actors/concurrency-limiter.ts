import { ReleasingMap } from "../src/model/releasing-map.ts";

/** A run that asks to start, and what it is counted under. */
export interface Claim {
  readonly run: string;
  readonly tenant: string;
  readonly graph: string;
}

/** How many runs may be in progress at once; Infinity: as many as come. */
export interface GateLimits {
  readonly all: number;
  readonly perTenant: number;
  /** By the name of the graph; one that is not named has no limit of its own. */
  readonly perGraph: { readonly [graph: string]: number };
}

export const noLimits: GateLimits = { all: Infinity, perTenant: Infinity, perGraph: {} };

interface Waiting extends Claim {
  readonly ticket: number;
  ready(): void;
}

/** Those who wait, by graph; each graph's in the order of asking. */
type Line = Map<string, Map<string, Waiting>>;

/**
 * Says which run may start. While there is room it is never asked to wait; else slots go round the tenants, so that one with
 * ten thousand runs takes no more turns than one with a single run, and within a tenant to who asked first.
 */
export class Gate {
  readonly #limits: GateLimits;
  readonly #free: boolean;
  readonly #held = new ReleasingMap<string, Claim>();
  readonly #byTenant = new Map<string, number>();
  readonly #byGraph = new Map<string, number>();
  /** Tenants who wait, the next to be served first. */
  readonly #lines = new Map<string, Line>();
  readonly #waiting = new ReleasingMap<string, Waiting>();
  #tickets = 0;
  #open = true;

  constructor(limits: GateLimits) {
    this.#limits = limits;
    const { all, perTenant, perGraph } = limits;
    this.#free = all === Infinity && perTenant === Infinity && Object.keys(perGraph).length === 0;
  }

  /** Runs that wait for a slot. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Takes a slot, if one is free and nobody has asked before. It MUST be given back by `leave`. */
  enter(claim: Claim): boolean {
    if (!this.#open) return false;
    if (this.#free) return true;
    if (!this.#hasRoom(claim.tenant, claim.graph)) return false;
    // Those who wait could have come in, had there been room for them.
    this.#take(claim);
    return true;
  }

  /** Takes a slot whether one is free or not, unless it has one: for a run that was in progress when the server went down. */
  hold(claim: Claim): void {
    if (!this.#free && !this.#held.has(claim.run)) this.#take(claim);
  }

  /** Calls `ready` once a slot has been taken for it: now, or later. */
  ask(claim: Claim, ready: () => void): void {
    if (this.enter(claim)) return ready();
    const waiting = { ...claim, ticket: this.#tickets++, ready };
    let line = this.#lines.get(claim.tenant);
    if (line === undefined) this.#lines.set(claim.tenant, (line = new Map()));
    const queue = line.get(claim.graph);
    if (queue === undefined) line.set(claim.graph, new Map([[claim.run, waiting]]));
    else queue.set(claim.run, waiting);
    this.#waiting.set(claim.run, waiting);
  }

  /** The run has ended, or is not to start any more. */
  leave(run: string): void {
    const waiting = this.#waiting.get(run);
    if (waiting !== undefined) return this.#remove(waiting);
    const claim = this.#held.get(run);
    if (claim === undefined) return;
    this.#held.delete(run);
    count(this.#byTenant, claim.tenant, -1);
    count(this.#byGraph, claim.graph, -1);
    this.#next();
  }

  /** How many runs of the same tenant start before this one, itself included; undefined when it does not wait here. */
  position(run: string): number | undefined {
    const own = this.#waiting.get(run);
    if (own === undefined) return undefined;
    let place = 0;
    for (const queue of this.#lines.get(own.tenant)?.values() ?? []) {
      for (const { ticket } of queue.values()) {
        if (ticket > own.ticket) break;
        place++;
      }
    }
    return place;
  }

  /** The same of a run in its thread's queue, of which the first alone waits here; undefined when it is not in it. */
  positionIn(queue: readonly string[], run: string): number | undefined {
    const place = queue.indexOf(run);
    return place < 0 ? undefined : place + (this.position(queue[0] ?? "") ?? 1);
  }

  /** Nobody enters any more. */
  close(): void {
    this.#open = false;
  }

  #hasRoom(tenant: string, graph: string): boolean {
    const { all, perTenant, perGraph } = this.#limits;
    if (this.#held.size >= all || (this.#byTenant.get(tenant) ?? 0) >= perTenant) return false;
    const most = Object.hasOwn(perGraph, graph) ? perGraph[graph] : undefined;
    return most === undefined || (this.#byGraph.get(graph) ?? 0) < most;
  }

  #take(claim: Claim): void {
    this.#held.set(claim.run, claim);
    count(this.#byTenant, claim.tenant, 1);
    count(this.#byGraph, claim.graph, 1);
  }

  #remove(waiting: Waiting): void {
    const { run, tenant, graph } = waiting;
    this.#waiting.delete(run);
    const line = this.#lines.get(tenant);
    const queue = line?.get(graph);
    queue?.delete(run);
    if (queue?.size === 0) line?.delete(graph);
    if (line?.size === 0) this.#lines.delete(tenant);
  }

  /** Gives the slots that are free to those whose turn it is. */
  #next(): void {
    while (this.#open) {
      const next = this.#turn();
      if (next === undefined) return;
      this.#remove(next);
      this.#take(next);
      // To the back, behind all others that wait.
      const line = this.#lines.get(next.tenant);
      if (line !== undefined) {
        this.#lines.delete(next.tenant);
        this.#lines.set(next.tenant, line);
      }
      next.ready();
    }
  }

  #turn(): Waiting | undefined {
    for (const [tenant, line] of this.#lines) {
      let first: Waiting | undefined;
      for (const [graph, queue] of line) {
        const [head] = queue.values();
        if (head === undefined || !this.#hasRoom(tenant, graph)) continue;
        if (first === undefined || head.ticket < first.ticket) first = head;
      }
      if (first !== undefined) return first;
      if (this.#held.size >= this.#limits.all) return undefined;
    }
    return undefined;
  }
}

function count(counts: Map<string, number>, name: string, by: number): void {
  const next = (counts.get(name) ?? 0) + by;
  if (next === 0) counts.delete(name);
  else counts.set(name, next);
}
