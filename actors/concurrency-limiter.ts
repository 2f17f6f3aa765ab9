import { ReleasingMap } from "../src/model/releasing-map.ts";
import type { RunBytes, RunMemoryBudget } from "./run-memory-budget.ts";

/** A run's request for a slot. The limits of its tenant and its graph apply. */
export interface SlotRequest {
  readonly run: string;
  readonly tenant: string;
  readonly graph: string;
  /** The bytes of memory that the run is expected to need. */
  readonly bytes: RunBytes;
}

/** The largest numbers of runs that may be in progress at once; Infinity: no limit. */
export interface ConcurrencyLimits {
  readonly all: number;
  readonly perTenant: number;
  /** The limit of each graph, by the name of the graph. A graph that is missing here has no limit of its own. */
  readonly perGraph: { readonly [graph: string]: number };
}

export const unlimitedConcurrency: ConcurrencyLimits = { all: Infinity, perTenant: Infinity, perGraph: {} };

interface Waiting extends SlotRequest {
  readonly ticket: number;
  ready(): void;
}

/**
 * The waiting runs of one tenant. For each graph, the outer map has a list of large runs and a list of small runs. Each
 * list has the runs by id, in the order of their requests.
 */
type TenantQueue = Map<string, Map<string, Waiting>>;

/**
 * Limits how many runs are in progress at once: in all, by tenant, by graph, and by the memory that they need. Other
 * runs wait. Tenants take turns to get freed slots, so that a tenant with ten thousand runs gets no more turns than one
 * with a single run. Within a tenant, the run that asked first comes first, but runs that wait for memory do not block
 * small runs.
 */
export class ConcurrencyLimiter {
  readonly #limits: ConcurrencyLimits;
  readonly #states: RunMemoryBudget;
  readonly #isUnlimited: boolean;
  readonly #acquired = new ReleasingMap<string, SlotRequest>();
  readonly #byTenant = new Map<string, number>();
  readonly #byGraph = new Map<string, number>();
  /** Waiting runs by tenant; the tenant that is served next comes first. */
  readonly #queues = new Map<string, TenantQueue>();
  readonly #waiting = new ReleasingMap<string, Waiting>();
  /** The number of large runs that wait for a slot or for memory. */
  #largeWaiting = 0;
  #tickets = 0;
  #isOpen = true;

  constructor(limits: ConcurrencyLimits, states: RunMemoryBudget) {
    this.#limits = limits;
    this.#states = states;
    states.onSpace(() => this.#serveWaiting());
    const { all, perTenant, perGraph } = limits;
    this.#isUnlimited = all === Infinity && perTenant === Infinity && Object.keys(perGraph).length === 0;
  }

  /** The number of runs that wait for a slot or for memory. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Takes a slot if one is free and there is memory for the run; otherwise returns false. The caller MUST give the slot
   * back with `release`.
   */
  tryAcquire(claim: SlotRequest): boolean {
    if (!this.#isOpen || !this.#hasRoom(claim)) return false;
    // The run cannot overtake a waiting run: a waiting run that could use the slot would have got it already.
    this.#take(claim);
    return true;
  }

  /**
   * Takes a slot for a run that was in progress when the server went down, even when no slot is free. Does nothing if
   * the run already has a slot.
   */
  forceAcquire(claim: SlotRequest): void {
    if (this.#isUnlimited) this.#states.reserve(claim.run, claim.bytes);
    else if (!this.#acquired.has(claim.run)) this.#take(claim);
  }

  /**
   * Takes a slot for a run, and calls `ready`: at once if there is a slot and memory for the run, otherwise as soon as
   * there is.
   */
  acquire(claim: SlotRequest, ready: () => void): void {
    if (this.tryAcquire(claim)) return ready();
    const waiting = { ...claim, ticket: this.#tickets++, ready };
    let line = this.#queues.get(claim.tenant);
    if (line === undefined) this.#queues.set(claim.tenant, (line = new Map()));
    const name = this.#queueName(claim);
    const queue = line.get(name);
    if (queue === undefined) line.set(name, new Map([[claim.run, waiting]]));
    else queue.set(claim.run, waiting);
    this.#waiting.set(claim.run, waiting);
    if (this.#states.isLarge(claim.bytes)) this.#largeWaiting++;
    this.#awaitMemory();
  }

  isWaiting(run: string): boolean {
    return this.#waiting.has(run);
  }

  /** Gives back the slot of a run, or removes it from the waiting runs. */
  release(run: string): void {
    const waiting = this.#waiting.get(run);
    if (waiting !== undefined) return this.#remove(waiting);
    const hadMemory = this.#states.release(run);
    const claim = this.#acquired.get(run);
    if (claim !== undefined) {
      this.#acquired.delete(run);
      count(this.#byTenant, claim.tenant, -1);
      count(this.#byGraph, claim.graph, -1);
    }
    if (hadMemory || claim !== undefined) this.#serveWaiting();
  }

  /** The position of a run, from 1, among the waiting runs of its tenant; undefined if the run does not wait. */
  position(run: string): number | undefined {
    const own = this.#waiting.get(run);
    if (own === undefined) return undefined;
    let place = 0;
    for (const queue of this.#queues.get(own.tenant)?.values() ?? []) {
      for (const { ticket } of queue.values()) {
        if (ticket > own.ticket) break;
        place++;
      }
    }
    return place;
  }

  /**
   * The position of a run, from 1, in the queue of its thread; undefined if the queue does not contain the run. If the
   * first run of the queue waits for a slot, the tenant's runs that wait ahead of that first run count too.
   */
  positionIn(queue: readonly string[], run: string): number | undefined {
    const place = queue.indexOf(run);
    return place < 0 ? undefined : place + (this.position(queue[0] ?? "") ?? 1);
  }

  /** Stops giving slots to waiting runs. Called at the shutdown. */
  close(): void {
    this.#isOpen = false;
    this.#states.stop();
  }

  #hasRoom({ tenant, graph, bytes }: SlotRequest): boolean {
    return this.#states.admits(bytes) && (this.#isUnlimited || this.#hasSlot(tenant, graph));
  }

  #hasSlot(tenant: string, graph: string): boolean {
    const { all, perTenant, perGraph } = this.#limits;
    if (this.#acquired.size >= all || (this.#byTenant.get(tenant) ?? 0) >= perTenant) return false;
    const most = Object.hasOwn(perGraph, graph) ? perGraph[graph] : undefined;
    return most === undefined || (this.#byGraph.get(graph) ?? 0) < most;
  }

  #take(claim: SlotRequest): void {
    this.#states.reserve(claim.run, claim.bytes);
    if (this.#isUnlimited) return;
    this.#acquired.set(claim.run, claim);
    count(this.#byTenant, claim.tenant, 1);
    count(this.#byGraph, claim.graph, 1);
  }

  #queueName({ graph, bytes }: SlotRequest): string {
    return `${this.#states.isLarge(bytes) ? "large" : "small"} ${graph}`;
  }

  #remove(waiting: Waiting): void {
    const { run, tenant } = waiting;
    const name = this.#queueName(waiting);
    this.#waiting.delete(run);
    if (this.#states.isLarge(waiting.bytes)) this.#largeWaiting--;
    const line = this.#queues.get(tenant);
    const queue = line?.get(name);
    queue?.delete(run);
    if (queue?.size === 0) line?.delete(name);
    if (line?.size === 0) this.#queues.delete(tenant);
  }

  #serveWaiting(): void {
    while (this.#isOpen) {
      const next = this.#nextInTurn();
      if (next === undefined) return this.#awaitMemory();
      this.#remove(next);
      this.#take(next);
      // Moves the tenant to the end, behind all other tenants with waiting runs.
      const line = this.#queues.get(next.tenant);
      if (line !== undefined) {
        this.#queues.delete(next.tenant);
        this.#queues.set(next.tenant, line);
      }
      next.ready();
    }
  }

  #awaitMemory(): void {
    if (this.#isOpen && this.#largeWaiting > 0 && this.#states.isFull) this.#states.waited();
  }

  #nextInTurn(): Waiting | undefined {
    for (const line of this.#queues.values()) {
      let first: Waiting | undefined;
      for (const queue of line.values()) {
        const [head] = queue.values();
        if (head === undefined || !this.#hasRoom(head)) continue;
        if (first === undefined || head.ticket < first.ticket) first = head;
      }
      if (first !== undefined) return first;
      if (this.#acquired.size >= this.#limits.all) return undefined;
    }
    return undefined;
  }
}

function count(counts: Map<string, number>, name: string, by: number): void {
  const next = (counts.get(name) ?? 0) + by;
  if (next === 0) counts.delete(name);
  else counts.set(name, next);
}
