import { createDelivery } from "../../../src/model/webhook-delivery.ts";
import type { HttpClient, OutgoingRequest, OutgoingResponse } from "../../../src/ports/http-client.ts";
import { createWebhooks } from "../../../src/service/webhooks/webhooks.ts";
import { WebhookWorker } from "../../../src/service/webhooks/webhook-worker.ts";
import { noFailpoints } from "../../../src/ports/failpoints.ts";
import { MemoryKeyValueStore } from "../../../src/storage/memory-key-value-store.ts";
import { openStorage, type Storage } from "../../../src/storage/open-storage.ts";
import { parseWebhookPolicy } from "../../../src/config/webhooks.ts";
import { SimulatedClock } from "../../simulation/clock.ts";
import { SimulatedRandom } from "../../simulation/random.ts";
import { SimulatedScheduler } from "../../simulation/scheduler.ts";
import { aRun, id, kwargs, threadKey, Writer } from "../../storage/samples.ts";

export type Receiver = (request: OutgoingRequest, nth: number) => number | Promise<number> | OutgoingResponse;

/** Never responds; ends when the request is aborted. */
export const hangs: Receiver = ({ signal }) =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));

export const refuses: Receiver = () => Promise.reject(new Error("connect ECONNREFUSED"));

/** Receivers by host, and the requests to each. */
export class Receivers implements HttpClient {
  readonly asked: OutgoingRequest[] = [];
  readonly names = new Map<string, readonly string[]>();
  readonly #receivers = new Map<string, Receiver>();
  open = 0;
  most = 0;

  at(host: string, receiver: Receiver): void {
    this.#receivers.set(host, receiver);
  }

  async resolve(name: string): Promise<readonly string[]> {
    const addresses = this.names.get(name) ?? ["93.184.216.34"];
    if (addresses.length === 0) throw new Error(`queryA ENOTFOUND ${name}`);
    return addresses;
  }

  async post(request: OutgoingRequest): Promise<OutgoingResponse> {
    this.asked.push(request);
    this.most = Math.max(this.most, ++this.open);
    try {
      const nth = this.asked.filter(({ url }) => url.host === request.url.host).length;
      const answer = await (this.#receivers.get(request.url.host) ?? (() => 200))(request, nth);
      return typeof answer === "number" ? { status: answer, retryAfter: undefined } : answer;
    } finally {
      this.open--;
    }
  }

  to(host: string): readonly OutgoingRequest[] {
    return this.asked.filter(({ url }) => url.host === host);
  }
}

/** The outbox and its worker, with a clock that the test advances. */
export class Rig {
  readonly receivers = new Receivers();
  readonly lines: string[] = [];
  readonly clock = new SimulatedClock();
  readonly kv = new MemoryKeyValueStore();
  scheduler = new SimulatedScheduler(this.clock);
  readonly #config: object;
  #storage: Storage | undefined;
  #worker: WebhookWorker | undefined;

  private constructor(config: object) {
    this.#config = config;
  }

  static async start(config: object = {}): Promise<Rig> {
    const rig = new Rig(config);
    await rig.boot();
    return rig;
  }

  get storage(): Storage {
    if (this.#storage === undefined) throw new TypeError("not started");
    return this.#storage;
  }

  get worker(): WebhookWorker {
    if (this.#worker === undefined) throw new TypeError("not started");
    return this.#worker;
  }

  get webhooks() {
    const { outbox } = this.storage;
    return createWebhooks({ outbox, policy: parseWebhookPolicy({ ...this.#config }), clock: this.clock });
  }

  /** Starts, or starts again after {@link kill}. */
  async boot(): Promise<void> {
    const { clock, scheduler } = this;
    const log = (message: string, fields?: object) =>
      void this.lines.push(`${message} ${JSON.stringify(fields)}`);
    const logger = { debug: () => undefined, info: log, warn: log, error: log };
    const deps = { scheduler, clock, failpoints: noFailpoints, logger };
    this.#storage = await openStorage({ kind: "key-value", store: this.kv }, deps);
    this.#worker = new WebhookWorker({
      journal: this.#storage.journal,
      outbox: this.#storage.outbox,
      client: this.receivers,
      policy: parseWebhookPolicy({ ...this.#config }),
      clock,
      random: new SimulatedRandom(1),
      scheduler,
      logger,
      version: "0.0.0",
    });
    await this.do(this.#worker.start(new URL("http://127.0.0.1:2024")));
  }

  /** Ends the process, whatever it is doing. */
  kill(): void {
    this.scheduler.kill();
    this.scheduler = new SimulatedScheduler(this.clock);
  }

  async do<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const done = () => (settled = true);
    promise.then(done, done);
    for (let turn = 0; !settled && turn < 100; turn++) await this.scheduler.settle();
    return promise;
  }

  /** A run that has ended with a pending webhook. */
  async owe(n: number, url: string, more: object = {}): Promise<void> {
    await this.do(this.oweSoon(n, url, more));
  }

  async oweSoon(n: number, url: string, more: object = {}): Promise<void> {
    const one = new Writer(() => this.storage.journal, threadKey(n));
    const run = aRun(one.key, n, {
      status: "success",
      started_at: 1_500,
      ended_at: 2_000,
      kwargs: { ...kwargs({ n }), webhook: url },
      ...more,
    });
    const owed = createDelivery({ run, values: { n }, waiting: null }, url, this.clock.now());
    await Promise.all([one.append(), one.append({ runs: [run], outbox: [owed] })]);
  }

  async deliveries(status?: "pending" | "dead") {
    const query = { limit: 1_000, offset: 0, ...(status && { status }) };
    return this.do(this.webhooks.list("_", query));
  }

  key(n: number) {
    return { tenant: "_", id: id(n) };
  }
}
