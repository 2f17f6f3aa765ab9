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

/** Tries at a time in all, and how many of them may be at places that gave no answer the last time. */
const PLACES = 64;
const PLACES_FAILING = 16;
/** Deliveries of a lane that are read at a time. */
const PAGE = 32;
/** Milliseconds before a storage that failed is asked again. */
const PAUSE = 1_000;

/**
 * Makes the deliveries that are owed: at least once each, in no particular order. It holds a few of them in memory and
 * looks at storage for the rest, lane by lane, so that neither many deliveries nor a dead receiver cost anybody else.
 */
export class WebhookWorker {
  readonly #deps: WorkerDeps;
  readonly #time: SteadyTime;
  readonly #lanes = new Map<string, Lane>();
  readonly #graveyard: Graveyard;
  /** Lanes that may have something to be tried, in turn. */
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

  /** Takes up what is owed, and from then on what comes in. `self`: where this server is reached, for paths on it. */
  async start(self: URL): Promise<void> {
    const { outbox, logger, scheduler } = this.#deps;
    this.#self = self;
    outbox.watch((name) => this.#serve(this.#lane(name)));
    this.#graveyard.start();
    try {
      for await (const name of outbox.lanes()) this.#serve(this.#lane(name));
    } catch (error) {
      logger.warn("the outbox could not be read; it is tried again", { error: String(error) });
      if (!this.#stopping) scheduler.after(PAUSE, () => void this.start(self));
    }
  }

  /** Begins nothing new; gives what is under way `ms`, then cuts it off: it is tried again after the next start. */
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

  /** Something in it may be due. */
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

  /** Gives out the free places, one to each lane in turn. */
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
        // It comes in line again when one of its own, or of the failing ones, is through.
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

  /** Looks for what is due in a lane, and when none is, when the next will be. */
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
      this.#deps.logger.warn("the outbox could not be read; it is tried again", { error: String(error) });
      wait = PAUSE;
    }
    lane.reading = false;
    if (lane.due.length > 0 || lane.changed) return this.#serve(lane);
    if (wait !== undefined) this.#serveLater(lane, wait);
    else if (lane.isIdle && !lane.inLine) this.#lanes.delete(lane.name);
  }

  /**
   * Milliseconds until a delivery is to be tried. Nothing waits for a first try. A last try that lies ahead of the time was noted by an
   * earlier process whose clock was ahead of this one's: how long ago that was cannot be told, and one try more does no harm.
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
      logger.warn("a webhook's delivery could not be noted; it is made again", { error: String(error) });
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
    // It may have been tried, postponed or deleted since it was read.
    const delivery = await outbox.find(seen);
    if (delivery?.status !== "pending" || this.#waitFor(delivery) > 0) return;
    const content = await this.#contentOf(seen);
    const owed = { ...seen, delivery };
    const outcome: Outcome =
      content === undefined || this.#self === undefined
        ? { kind: "never", status: null, error: "What it tells is missing or damaged", asked: 0 }
        : await send(this.#deps, owed, content, this.#self, signal);
    // The server stops: that is not the receiver's doing.
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

  /** What becomes of a delivery by a try. `now`: as it is by now, perhaps changed by somebody since the try began. */
  #after(now: Delivery, tried: Delivery, outcome: Outcome, lane: Lane): Delivery | null | undefined {
    const { random, policy, logger } = this.#deps;
    if (outcome.kind === "delivered") return null;
    if (now.due !== tried.due || now.status !== tried.status) return undefined;
    const attempts = now.attempts + 1;
    const at = this.#time.now();
    const { status, error } = outcome;
    const told = { attempts, last_attempt_at: at, last_status: status, last_error: error };
    if (outcome.kind === "never" || attempts >= policy.attempts) {
      // The host alone: the rest of a URL may hold a secret.
      logger.warn("a webhook was given up", { delivery: now.id, host: lane.name, attempts, status, error });
      this.#graveyard.expect(KEPT);
      return { ...now, ...told, status: "dead", due: at + KEPT };
    }
    return { ...now, ...told, due: at + backoff(attempts, random.float(), outcome.asked) };
  }
}

/** Why a try was cut off. */
const STOP = "the server stops";
