import type { Delivery, DeliveryContent } from "../../model/webhook-delivery.ts";
import { ServiceError } from "../../model/errors.ts";
import type { Logger } from "../../ports/logger.ts";
import type { Outbox, Owed } from "../../ports/outbox.ts";
import type { Random } from "../../ports/random.ts";
import type { Scheduler } from "../../ports/scheduler.ts";
import { SteadyTime } from "../../ports/steady-time.ts";
import { backoff } from "./backoff.ts";
import { Lane, nameOf } from "./target-queue.ts";
import { Graveyard, KEPT } from "./dead-letters.ts";
import { send, type Outcome, type SenderDeps } from "./webhook-sender.ts";

export interface WorkerDeps extends SenderDeps {
  readonly outbox: Outbox;
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly logger: Logger;
}

/** Concurrent attempts in total, and of these at targets that did not answer the last attempt. */
const PLACES = 64;
const PLACES_FAILING = 16;
/** Deliveries of a target read at a time. */
const PAGE = 32;
/** Milliseconds before a retry after a storage failure. */
const PAUSE = 1_000;

/**
 * Makes the pending deliveries: each at least once, in no particular order. A few of them are in memory; the rest is read from storage,
 * target by target, so that neither many deliveries nor a dead receiver slow down the others.
 */
export class WebhookWorker {
  readonly #deps: WorkerDeps;
  readonly #time: SteadyTime;
  readonly #lanes = new Map<string, Lane>();
  readonly #graveyard: Graveyard;
  /** Queues that may have something to attempt, served in turn. */
  #line: Lane[] = [];
  readonly #tries = new Map<AbortController, Lane>();
  #self: URL | undefined;
  #stopping = false;
  #stopped: (() => void) | undefined;

  constructor(deps: WorkerDeps) {
    this.#deps = deps;
    this.#time = new SteadyTime(deps.clock);
    this.#graveyard = new Graveyard(deps);
  }

  /** Starts with the stored deliveries, then takes new ones as they come. `self`: this server's own URL, for webhooks that are paths. */
  async start(self: URL): Promise<void> {
    const { outbox, logger, scheduler } = this.#deps;
    this.#self = self;
    outbox.watch((name) => this.#serve(this.#lane(name)));
    this.#graveyard.start();
    try {
      for await (const name of outbox.lanes()) this.#serve(this.#lane(name));
    } catch (error) {
      logger.warn("the outbox could not be read; retrying", { error: String(error) });
      if (!this.#stopping) scheduler.after(PAUSE, () => void this.start(self));
    }
  }

  /** Starts nothing new. Attempts in progress get `ms` to finish, then they are aborted; they are repeated after the next start. */
  async stop(ms: number): Promise<void> {
    this.#stopping = true;
    this.#graveyard.stop();
    for (const lane of this.#lanes.values()) lane.wake();
    if (this.#tries.size === 0) return;
    const over = new Promise<void>((resolve) => (this.#stopped = resolve));
    const cut = this.#deps.scheduler.after(ms, () => {
      for (const controller of this.#tries.keys()) controller.abort(STOP);
    });
    await over;
    cut();
  }

  #lane(name: string): Lane {
    const known = this.#lanes.get(name);
    if (known !== undefined) return known;
    const lane = new Lane(name);
    this.#lanes.set(name, lane);
    return lane;
  }

  /** Notes that something in the queue may be due. */
  #serve(lane: Lane): void {
    if (this.#stopping) return;
    lane.wake();
    if (lane.reading) lane.changed = true;
    if (!lane.inLine) {
      lane.inLine = true;
      this.#line.push(lane);
    }
    this.#fill();
  }

  /** Assigns the free slots, one to each queue in turn. */
  #fill(): void {
    const waiting: Lane[] = [];
    while (!this.#stopping && this.#tries.size < PLACES) {
      const lane = this.#line.shift();
      if (lane === undefined) break;
      const next = lane.isFull || this.#isBarred(lane) ? undefined : lane.due.shift();
      if (next !== undefined) {
        this.#line.push(lane);
        void this.#try(lane, next);
      } else if (lane.due.length > 0) {
        // The queue is served again when one of its attempts, or one at a failing target, has finished.
        waiting.push(lane);
      } else {
        lane.inLine = false;
        if (!lane.isFull) void this.#read(lane);
      }
    }
    this.#line.push(...waiting);
  }

  #isBarred({ failing }: Lane): boolean {
    if (!failing) return false;
    let taken = 0;
    for (const lane of this.#tries.values()) if (lane.failing) taken++;
    return taken >= PLACES_FAILING;
  }

  /** Reads the due deliveries of a queue; if there are none, finds when the next is due. */
  async #read(lane: Lane): Promise<void> {
    if (lane.reading) return;
    lane.reading = true;
    lane.changed = false;
    let wait: number | undefined;
    try {
      const found = await this.#deps.outbox.pending(lane.name, PAGE + lane.trying.size);
      for (const owed of found) {
        if (lane.trying.has(nameOf(owed))) continue;
        const rest = this.#waitFor(owed.delivery);
        if (rest <= 0) lane.due.push(owed);
        else wait = Math.min(wait ?? Number.POSITIVE_INFINITY, rest);
      }
    } catch (error) {
      this.#deps.logger.warn("the outbox could not be read; retrying", { error: String(error) });
      wait = PAUSE;
    }
    lane.reading = false;
    if (lane.due.length > 0 || lane.changed) return this.#serve(lane);
    if (wait !== undefined) this.#serveLater(lane, wait);
    else if (lane.isIdle && !lane.inLine) this.#lanes.delete(lane.name);
  }

  /**
   * Milliseconds until a delivery is due. A first attempt is due at once. If the last attempt lies in the future, an earlier process whose
   * clock was ahead has noted it; the true time is unknown, and one extra attempt does no harm.
   */
  #waitFor({ attempts, due, last_attempt_at }: Delivery): number {
    const now = this.#time.now();
    return attempts === 0 || (last_attempt_at ?? now) > now ? 0 : due - now;
  }

  #serveLater(lane: Lane, ms: number): void {
    if (this.#stopping) return;
    lane.sleep(this.#deps.scheduler.after(ms, () => this.#serve(lane)));
  }

  async #try(lane: Lane, seen: Owed): Promise<void> {
    const { policy, scheduler, logger } = this.#deps;
    const name = nameOf(seen);
    const controller = new AbortController();
    const late = scheduler.after(policy.timeout, () => controller.abort(new Error("It took too long")));
    this.#tries.set(controller, lane);
    lane.trying.add(name);
    let pause = false;
    try {
      await this.#deliver(lane, seen, controller.signal);
    } catch (error) {
      pause = true;
      logger.warn("the result of a webhook delivery could not be stored; it is repeated", {
        error: String(error),
      });
    }
    late();
    this.#tries.delete(controller);
    lane.trying.delete(name);
    if (this.#tries.size === 0) this.#stopped?.();
    if (pause) this.#serveLater(lane, PAUSE);
    else this.#serve(lane);
    this.#fill();
  }

  async #deliver(lane: Lane, seen: Owed, signal: AbortSignal): Promise<void> {
    const { outbox } = this.#deps;
    // The delivery may have been attempted, postponed or deleted since it was read.
    const delivery = await outbox.find(seen);
    if (delivery?.status !== "pending" || this.#waitFor(delivery) > 0) return;
    const content = await this.#contentOf(seen);
    const owed = { ...seen, delivery };
    const outcome: Outcome =
      content === undefined || this.#self === undefined
        ? { kind: "never", status: null, error: "What it tells is missing or damaged", asked: 0 }
        : await send(this.#deps, owed, content, this.#self, signal);
    // The shutdown aborted the attempt: that is no failure of the receiver.
    if (signal.reason === STOP && outcome.kind === "again") return;
    lane.failing = outcome.kind === "again" && outcome.status === null;
    await outbox.change(seen, (now) => this.#after(now, delivery, outcome, lane), { durable: false });
  }

  async #contentOf(owed: Owed): Promise<DeliveryContent | undefined> {
    try {
      return await this.#deps.outbox.content(owed);
    } catch (cause) {
      if (cause instanceof ServiceError && cause.code === "journal.damaged") return undefined;
      throw cause;
    }
  }

  /** The delivery after an attempt. `now`: its current form; somebody may have changed it since the attempt started. */
  #after(now: Delivery, tried: Delivery, outcome: Outcome, lane: Lane): Delivery | null | undefined {
    const { random, policy, logger } = this.#deps;
    if (outcome.kind === "delivered") return null;
    if (now.due !== tried.due || now.status !== tried.status) return undefined;
    const attempts = now.attempts + 1;
    const at = this.#time.now();
    const { status, error } = outcome;
    const told = { attempts, last_attempt_at: at, last_status: status, last_error: error };
    if (outcome.kind === "never" || attempts >= policy.attempts) {
      // The host only: the rest of a URL may hold a secret.
      logger.warn("a webhook was given up", { delivery: now.id, host: lane.name, attempts, status, error });
      this.#graveyard.expect(KEPT);
      return { ...now, ...told, status: "dead", due: at + KEPT };
    }
    return { ...now, ...told, due: at + backoff(attempts, random.float(), outcome.asked) };
  }
}

/** The abort reason at shutdown. */
const STOP = "the server stops";
