import type { Delivery, DeliveryContent } from "../../model/webhook-delivery.ts";
import { ServiceError } from "../../model/errors.ts";
import type { Journal } from "../../ports/journal.ts";
import type { Logger } from "../../ports/logger.ts";
import type { Outbox, OutboxEntry } from "../../ports/outbox.ts";
import type { Random } from "../../ports/random.ts";
import type { Scheduler } from "../../ports/scheduler.ts";
import { MonotonicEpochClock } from "../../ports/monotonic-epoch-clock.ts";
import { webhookRetryDelay } from "./retry-policy.ts";
import { TargetQueue, deliveryName } from "./target-queue.ts";
import { DeadLetterPurger, DEAD_LETTER_TTL } from "./dead-letter-purger.ts";
import { sendWebhook, type AttemptOutcome, type SenderDeps } from "./webhook-sender.ts";

export interface WebhookWorkerDeps extends SenderDeps {
  readonly journal: Pick<Journal, "whenWritable">;
  readonly outbox: Outbox;
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly logger: Logger;
}

/** No new attempt begins while this many attempts are in progress, at all targets together. */
const MAX_ATTEMPTS = 64;
/**
 * No new attempt at a failing target (one that did not answer its last attempt) begins while this many attempts at failing targets are in
 * progress.
 */
const MAX_ATTEMPTS_FAILING = 16;
/** The number of deliveries of a target that are read at a time. */
const DELIVERIES_PER_READ = 32;
/** Milliseconds before a retry after a storage failure. */
const RETRY_PAUSE_MS = 1_000;

/**
 * Attempts the pending deliveries, each at least once and in no particular order. Only a few deliveries of each target are in memory; the
 * rest is read from storage, target by target. A long queue, or a receiver that does not answer, does not slow down the deliveries to other
 * targets.
 */
export class WebhookWorker {
  readonly #deps: WebhookWorkerDeps;
  readonly #time: MonotonicEpochClock;
  readonly #queues = new Map<string, TargetQueue>();
  readonly #deadLetters: DeadLetterPurger;
  /** The queues that may have due deliveries and wait for their next attempt. They are served in turn. */
  #waiting: TargetQueue[] = [];
  readonly #tries = new Map<AbortController, TargetQueue>();
  #self: URL | undefined;
  #stopping = false;
  /** True while the worker waits until the storage accepts writes again. */
  #isWaiting = false;
  #stopped: (() => void) | undefined;

  constructor(deps: WebhookWorkerDeps) {
    this.#deps = deps;
    this.#time = new MonotonicEpochClock(deps.clock);
    this.#deadLetters = new DeadLetterPurger(deps);
  }

  /**
   * Starts with the stored deliveries, and continues with each new delivery when it has been stored. `self`: the URL of this server, for
   * webhooks that are paths.
   */
  async start(self: URL): Promise<void> {
    const { outbox, logger, scheduler } = this.#deps;
    this.#self = self;
    outbox.watch((name) => this.#enqueue(this.#queueOf(name)));
    this.#deadLetters.start();
    try {
      for await (const name of outbox.targets()) this.#enqueue(this.#queueOf(name));
    } catch (error) {
      logger.warn("the outbox could not be read; retrying", { error: String(error) });
      if (!this.#stopping) scheduler.after(RETRY_PAUSE_MS, () => void this.start(self));
    }
  }

  /**
   * Stops the worker: it begins no new attempt. Attempts in progress have `ms` milliseconds to finish; then they are aborted, and repeated
   * after the next start.
   */
  async stop(ms: number): Promise<void> {
    this.#stopping = true;
    this.#deadLetters.stop();
    for (const queue of this.#queues.values()) queue.wake();
    if (this.#tries.size === 0) return;
    const over = new Promise<void>((resolve) => (this.#stopped = resolve));
    const cut = this.#deps.scheduler.after(ms, () => {
      for (const controller of this.#tries.keys()) controller.abort(STOP);
    });
    await over;
    cut();
  }

  #queueOf(name: string): TargetQueue {
    const known = this.#queues.get(name);
    if (known !== undefined) return known;
    const queue = new TargetQueue(name);
    this.#queues.set(name, queue);
    return queue;
  }

  /** Adds a queue to the queues that wait for their next attempt, because it may have due deliveries. */
  #enqueue(queue: TargetQueue): void {
    if (this.#stopping) return;
    queue.wake();
    if (queue.reading) queue.changed = true;
    if (!queue.inLine) {
      queue.inLine = true;
      this.#waiting.push(queue);
    }
    this.#fill();
  }

  /**
   * Starts attempts until {@link MAX_ATTEMPTS} are in progress, one for each waiting queue in turn. Does nothing while the storage refuses
   * writes: the results of attempts could not be stored, so each attempt would be repeated.
   */
  #fill(): void {
    const writable = this.#deps.journal.whenWritable();
    if (writable !== undefined) {
      if (this.#isWaiting) return;
      this.#isWaiting = true;
      void writable.then(() => {
        this.#isWaiting = false;
        this.#fill();
      });
      return;
    }
    const waiting: TargetQueue[] = [];
    while (!this.#stopping && this.#tries.size < MAX_ATTEMPTS) {
      const queue = this.#waiting.shift();
      if (queue === undefined) break;
      const next = queue.isFull || this.#isThrottled(queue) ? undefined : queue.due.shift();
      if (next !== undefined) {
        this.#waiting.push(queue);
        void this.#try(queue, next);
      } else if (queue.due.length > 0) {
        // The target, or all failing targets together, have reached their limit of concurrent attempts. The queue is served again when an
        // attempt has finished.
        waiting.push(queue);
      } else {
        queue.inLine = false;
        if (!queue.isFull) void this.#read(queue);
      }
    }
    this.#waiting.push(...waiting);
  }

  #isThrottled({ failing }: TargetQueue): boolean {
    if (!failing) return false;
    let taken = 0;
    for (const queue of this.#tries.values()) if (queue.failing) taken++;
    return taken >= MAX_ATTEMPTS_FAILING;
  }

  /** Reads the due deliveries of a queue; if there are none, finds when the next is due. */
  async #read(queue: TargetQueue): Promise<void> {
    if (queue.reading) return;
    queue.reading = true;
    queue.changed = false;
    let wait: number | undefined;
    try {
      const found = await this.#deps.outbox.pending(queue.name, DELIVERIES_PER_READ + queue.trying.size);
      for (const entry of found) {
        if (queue.trying.has(deliveryName(entry))) continue;
        const rest = this.#waitFor(entry.delivery);
        if (rest <= 0) queue.due.push(entry);
        else wait = Math.min(wait ?? Number.POSITIVE_INFINITY, rest);
      }
    } catch (error) {
      this.#deps.logger.warn("the outbox could not be read; retrying", { error: String(error) });
      wait = RETRY_PAUSE_MS;
    }
    queue.reading = false;
    if (queue.due.length > 0 || queue.changed) return this.#enqueue(queue);
    if (wait !== undefined) this.#serveLater(queue, wait);
    else if (queue.isIdle && !queue.inLine) this.#queues.delete(queue.name);
  }

  /**
   * Milliseconds until a delivery is due. A first attempt is due immediately. If the recorded time of the last attempt is in the future,
   * the clock of an earlier process was fast. The true time is then unknown, and the delivery is due immediately, because one extra attempt
   * does no harm.
   */
  #waitFor({ attempts, due, last_attempt_at }: Delivery): number {
    const now = this.#time.now();
    return attempts === 0 || (last_attempt_at ?? now) > now ? 0 : due - now;
  }

  #serveLater(queue: TargetQueue, ms: number): void {
    if (this.#stopping) return;
    queue.sleep(this.#deps.scheduler.after(ms, () => this.#enqueue(queue)));
  }

  async #try(queue: TargetQueue, seen: OutboxEntry): Promise<void> {
    const { policy, scheduler, logger } = this.#deps;
    const name = deliveryName(seen);
    const controller = new AbortController();
    const late = scheduler.after(policy.timeout, () => controller.abort(new Error("It took too long")));
    this.#tries.set(controller, queue);
    queue.trying.add(name);
    let pause = false;
    try {
      await this.#deliver(queue, seen, controller.signal);
    } catch (error) {
      pause = true;
      // During an outage of the storage, the error is logged only at the level `debug`, because it affects every delivery and is logged
      // elsewhere.
      const isOutage = this.#deps.journal.whenWritable() !== undefined;
      logger[isOutage ? "debug" : "warn"](
        "the result of a webhook delivery could not be stored; it is repeated",
        {
          error: String(error),
        },
      );
    }
    late();
    this.#tries.delete(controller);
    queue.trying.delete(name);
    if (this.#tries.size === 0) this.#stopped?.();
    if (pause) this.#serveLater(queue, RETRY_PAUSE_MS);
    else this.#enqueue(queue);
    this.#fill();
  }

  async #deliver(queue: TargetQueue, seen: OutboxEntry, signal: AbortSignal): Promise<void> {
    const { outbox } = this.#deps;
    // The delivery may have been attempted, postponed or deleted since it was read.
    const delivery = await outbox.find(seen);
    if (delivery?.status !== "pending" || this.#waitFor(delivery) > 0) return;
    const content = await this.#contentOf(seen);
    const entry = { ...seen, delivery };
    const outcome: AttemptOutcome =
      content === undefined || this.#self === undefined
        ? { kind: "never", status: null, error: "What it tells is missing or damaged", asked: 0 }
        : await sendWebhook(this.#deps, entry, content, this.#self, signal);
    // The server aborted the attempt because it stops. That is not a failure of the receiver, so nothing is recorded.
    if (signal.reason === STOP && outcome.kind === "again") return;
    queue.failing = outcome.kind === "again" && outcome.status === null;
    await outbox.change(seen, (now) => this.#after(now, delivery, outcome, queue), { durable: false });
  }

  async #contentOf(entry: OutboxEntry): Promise<DeliveryContent | undefined> {
    try {
      return await this.#deps.outbox.content(entry);
    } catch (cause) {
      if (cause instanceof ServiceError && cause.code === "journal.damaged") return undefined;
      throw cause;
    }
  }

  /** The record of a delivery after an attempt. `now`: the record's current form, which may have changed since the attempt began. */
  #after(
    now: Delivery,
    tried: Delivery,
    outcome: AttemptOutcome,
    queue: TargetQueue,
  ): Delivery | null | undefined {
    const { random, policy, logger } = this.#deps;
    if (outcome.kind === "delivered") {
      queue.hasRefused = false;
      return null;
    }
    if (now.due !== tried.due || now.status !== tried.status) return undefined;
    const attempts = now.attempts + 1;
    const at = this.#time.now();
    const { status, error } = outcome;
    // Logs only the host of the URL, because the rest of the URL may contain a secret.
    const host = queue.name === "" ? this.#self?.host : queue.name;
    const attemptRecord = { attempts, last_attempt_at: at, last_status: status, last_error: error };
    if (outcome.kind === "never" || attempts >= policy.attempts) {
      logger.warn("a webhook was given up", { delivery: now.id, host, attempts, status, error });
      this.#deadLetters.schedule(DEAD_LETTER_TTL);
      return { ...now, ...attemptRecord, status: "dead", due: at + DEAD_LETTER_TTL };
    }
    // Without a response, the target may only be restarting. A refusal is usually a mistake in its settings or in the server's.
    if (status !== null && !queue.hasRefused) {
      queue.hasRefused = true;
      logger.warn("a webhook was refused; it is tried again", { delivery: now.id, host, status });
    }
    return { ...now, ...attemptRecord, due: at + webhookRetryDelay(attempts, random.float(), outcome.asked) };
  }
}

/** The abort reason at shutdown. */
const STOP = "the server stops";
