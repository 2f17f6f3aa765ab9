import { ReleasingMap } from "../src/model/releasing-map.ts";

/** A run that asks for a slot, with the tenant and the graph that it counts for. */
export interface Claim {
  readonly run: string;
  readonly tenant: string;
  readonly graph: string;
}

/** How many runs may be in progress at once; Infinity: no limit. */
export interface GateLimits {
  readonly all: number;
  readonly perTenant: number;
  /** By graph name; a graph that is not named has no limit of its own. */
  readonly perGraph: { readonly [graph: string]: number };
}

export const noLimits: GateLimits = { all: Infinity, perTenant: Infinity, perGraph: {} };

interface Waiting extends Claim {
  readonly ticket: number;
  ready(): void;
}

/** Waiting runs of one tenant, by graph; those of a graph in the order in which they asked. */
type Line = Map<string, Map<string, Waiting>>;

/**
 * Limits how many runs are in progress at once: in all, by tenant and by graph. A run gets a free slot at once; when
 * none is free, it waits. Freed slots go round robin over the tenants, so that a tenant with ten thousand runs gets
 * no more turns than one with a single run; within a tenant they go to the run that asked first.
 */
export class Gate {
  readonly #limits: GateLimits;
  readonly #free: boolean;
  readonly #held = new ReleasingMap<string, Claim>();
  readonly #byTenant = new Map<string, number>();
  readonly #byGraph = new Map<string, number>();
  /** Waiting runs by tenant; the tenant that is served next comes first. */
  readonly #lines = new Map<string, Line>();
  readonly #waiting = new ReleasingMap<string, Waiting>();
  #tickets = 0;
  #open = true;

  constructor(limits: GateLimits) {
    this.#limits = limits;
    const { all, perTenant, perGraph } = limits;
    this.#free = all === Infinity && perTenant === Infinity && Object.keys(perGraph).length === 0;
  }

  /** The number of runs that wait for a slot. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Takes a slot if one is free. The caller MUST give it back with `leave`. */
  enter(claim: Claim): boolean {
    if (!this.#open) return false;
    if (this.#free) return true;
    if (!this.#hasRoom(claim.tenant, claim.graph)) return false;
    // Nobody is overtaken: a waiting run that could use this slot would have got it already.
    this.#take(claim);
    return true;
  }

  /**
   * Takes a slot even when none is free, unless the run has one: for a run that was in progress when the server went
   * down.
   */
  hold(claim: Claim): void {
    if (!this.#free && !this.#held.has(claim.run)) this.#take(claim);
  }

  /** Calls `ready` when the run has got a slot: now, or later. */
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

  /** Gives back the slot of a run, or removes it from the waiting runs. */
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

  /** The position of a waiting run among those of its tenant, from 1; undefined when it does not wait for a slot. */
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

  /**
   * The position of a run in its thread's queue, of which only the first waits for a slot; undefined when it is not
   * in the queue.
   */
  positionIn(queue: readonly string[], run: string): number | undefined {
    const place = queue.indexOf(run);
    return place < 0 ? undefined : place + (this.position(queue[0] ?? "") ?? 1);
  }

  /** Stops giving slots. */
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

  /** Gives free slots to waiting runs. */
  #next(): void {
    while (this.#open) {
      const next = this.#turn();
      if (next === undefined) return;
      this.#remove(next);
      this.#take(next);
      // Round robin: the tenant goes behind all others that wait.
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
