import { createRequestForwarder } from "../../../src/cluster/request-forwarder.ts";
import { ServiceError } from "../../../src/model/errors.ts";
import { silentLogger } from "../../../src/platform/log.ts";
import {
  MISDIRECTED_STATUS,
  type PeerAddress,
  PeerLost,
  type PeerRequest,
} from "../../../src/ports/peers.ts";
import type { HttpRequest, Reply, ReplyHeaders } from "../../../src/ports/transport.ts";
import type { RequestForwarder } from "../../../src/ports/peers.ts";
import { ReplicatedKeyValueStore } from "../../../src/replication/replicated-key-value-store.ts";
import { reopenStore } from "../../../src/storage/reopen-store.ts";
import { WriteOutage } from "../../../src/storage/write-outage.ts";
import { deferred } from "./deferred.ts";
import type { SimulatedEngine } from "./engine.ts";
import { ProcessScheduler, type Machine } from "./machine.ts";
import type { Answer, PeerNetwork, PeerProcess } from "./peer-network.ts";
import type { ClusterPlant } from "./planted-faults.ts";
import type { ShardDisk } from "./shard-disk.ts";

/** What all processes of a simulated cluster share. */
export interface ClusterParts {
  readonly engine: SimulatedEngine;
  readonly network: PeerNetwork;
  readonly shards: number;
  readonly leaseMs: number;
  /** When the log of a shard has this many new bytes, a snapshot is made. */
  readonly snapshotBytes: number;
  /** Milliseconds for which an append without an answer is repeated. */
  readonly patienceMs: number;
  readonly plant: ClusterPlant | undefined;
  /** Called when an owner begins to serve a shard. */
  served(shard: number, epoch: number): void;
}

/** The shard of a process, and its directory. */
export interface ProcessShard {
  readonly shard: number;
  readonly epoch: number | Promise<number>;
  readonly disk: ShardDisk;
  /** Called when the process has applied the whole log, but does not own the shard yet. */
  onCaughtUp?(): void;
}

/** The name of a client's request header. */
const KEY = "idempotency-key";
const BASE = { tenant: "_", user: undefined, id: "", headers: {} };

export const listKey = (register: string): string => `list/${register}`;

/**
 * A process of a node: it has one shard, or only forwards requests. It stores the items of registers: an item, the register's list, and the
 * idempotency key are one batch.
 */
export class ShardProcess implements PeerProcess {
  readonly scheduler: ProcessScheduler;
  readonly port: number;
  /** Resolves when the process serves its shard. Rejects if it ends before. */
  readonly started: Promise<void>;
  readonly shard: number | undefined;
  isListening = false;
  readonly #parts: ClusterParts;
  readonly #owned: ProcessShard | undefined;
  readonly #forwarder: RequestForwarder;
  readonly #stop = new AbortController();
  readonly #exits: (() => void)[] = [];
  readonly #sent = new Map<() => void, { readonly shard: number; readonly port: number }>();
  #routes: ReadonlyMap<number, PeerAddress> = new Map();
  #validUntil = -Infinity;
  #isReleased = false;
  #kv: ReplicatedKeyValueStore | undefined;
  /** One write at a time. */
  #last: Promise<unknown> = Promise.resolve();
  #outage: WriteOutage | undefined;

  constructor(machine: Machine, parts: ClusterParts, owned: ProcessShard | undefined) {
    this.#parts = parts;
    this.#owned = owned;
    this.shard = owned?.shard;
    this.port = parts.network.newPort();
    this.scheduler = new ProcessScheduler(machine);
    const { random } = machine.universe;
    this.#forwarder = createRequestForwarder({
      own: this.shard,
      count: parts.shards,
      isOwner: () => this.#isOwner(),
      peers: {
        request: (shard, request) => this.#ask(shard, request),
        open: () => Promise.reject(new TypeError("no sockets here")),
        close: () => undefined,
      },
      newId: () => Buffer.from(random.bytes(16)).toString("hex"),
      clock: machine,
      scheduler: this.scheduler,
    });
    const started = deferred<void>();
    this.started = started.promise;
    this.started.catch(() => undefined);
    this.onExit(() => started.reject(new Error("the process has ended")));
    this.scheduler.after(random.below(100), () => {
      this.#start().then(started.resolve, () => this.kill());
    });
  }

  get isReleased(): boolean {
    return this.#isReleased;
  }

  onExit(listener: () => void): void {
    this.#exits.push(listener);
  }

  /** Takes over what the node's parent process sends. */
  update(routes: ReadonlyMap<number, PeerAddress>, validUntil: number): void {
    this.#routes = routes;
    this.#validUntil = validUntil;
    // Connections to addresses that no shard has any more are broken.
    for (const [breakOff, { shard, port }] of this.#sent) {
      if (portOf(routes.get(shard)) !== port) breakOff();
    }
  }

  async #start(): Promise<void> {
    const owned = this.#owned;
    const { network } = this.#parts;
    if (owned !== undefined) {
      await this.#open(owned);
      this.#parts.served(owned.shard, await owned.epoch);
    }
    if (this.scheduler.isDead) return;
    network.processes.set(this.port, this);
    this.onExit(() => network.processes.delete(this.port));
    this.isListening = true;
  }

  async #open({ shard, epoch, disk, onCaughtUp }: ProcessShard): Promise<void> {
    const { engine, snapshotBytes, patienceMs } = this.#parts;
    const { scheduler } = this;
    const { log, snapshots } = engine.linkOf(scheduler);
    const kv = new ReplicatedKeyValueStore(
      disk.mount(scheduler),
      this.#parts.plant?.log?.(log) ?? log,
      { shard, epoch },
      {
        clock: scheduler.machine,
        scheduler,
        random: scheduler.machine.universe.random,
        patienceMs,
        snapshots: { store: snapshots, logBytes: snapshotBytes, logger: silentLogger },
        onFenced: () => this.kill(),
        ...(onCaughtUp && { onCaughtUp }),
      },
    );
    await kv.open();
    this.#kv = kv;
  }

  #isOwner(): boolean {
    return !this.#isReleased && this.scheduler.machine.mono() < this.#validUntil;
  }

  #ask(shard: number, request: PeerRequest) {
    const port = portOf(this.#routes.get(shard));
    if (port === undefined) return Promise.reject(new PeerLost(false, undefined));
    let sent: (() => void) | undefined;
    const planted = this.#parts.plant?.forwarded?.(request) ?? request;
    return this.#parts.network
      .request(this.scheduler, port, planted, (breakOff) => {
        sent = breakOff;
        this.#sent.set(breakOff, { shard, port });
      })
      .finally(() => sent && this.#sent.delete(sent));
  }

  /** Answers a request of another process. */
  async answerPeer({ method, path, headers, body }: PeerRequest): Promise<Answer> {
    if (!this.#isOwner()) return { status: MISDIRECTED_STATUS, body: "" };
    const key = headers[KEY];
    return this.#execute(method, path, typeof key === "string" ? key : undefined, textOf(body));
  }

  /** Answers a request of a client: itself, or by forwarding it. */
  answerClient(method: "GET" | "POST", register: string, item: string, key?: string): Promise<Answer> {
    const path = `/${register}`;
    return new Promise((resolve) => {
      const headers = new Map(key === undefined ? [] : [[KEY, key]]);
      const request: HttpRequest = {
        method,
        path,
        query: "",
        header: (name) => headers.get(name),
        headers: () => headers,
        body: async () => Buffer.from(item),
      };
      const send = (status: number, _: ReplyHeaders, body: Uint8Array | string = ""): void =>
        resolve({ status, body: textOf(body) });
      const reply: Reply = {
        send,
        open: () => {
          throw new TypeError("no streams here");
        },
        onAbort: () => undefined,
        aborted: false,
      };
      const forwarded = this.#forwarder.request(register, request, reply, {
        client: BASE,
        startsRun: method === "POST",
        count: () => undefined,
      });
      if (forwarded === undefined) void this.#execute(method, path, key, item).then(resolve);
      else forwarded.catch((error: unknown) => resolve(refusal(error)));
    });
  }

  async #execute(method: string, path: string, key: string | undefined, item: string): Promise<Answer> {
    const register = path.slice(1);
    try {
      if (method === "GET") return { status: 200, body: await this.#text(listKey(register)) };
      const done = this.#last.then(() => this.#append(register, key, item));
      this.#last = done.catch(() => undefined);
      await done;
      return { status: 200, body: "" };
    } catch (error) {
      return refusal(error);
    }
  }

  async #append(register: string, key: string | undefined, item: string): Promise<void> {
    const kv = this.#kv;
    if (kv === undefined) throw new TypeError("the process does not serve its shard yet");
    if (this.#outage !== undefined) throw this.#outage.error;
    const list = await this.#text(listKey(register));
    if (key !== undefined && (await kv.get(`key/${key}`)) !== undefined) return;
    const value = Buffer.from(item);
    const stored = kv.batch([
      { key: `item/${item}`, value },
      { key: listKey(register), value: Buffer.from(list === "" ? item : `${list},${item}`) },
      ...(key === undefined ? [] : [{ key: `key/${key}`, value }]),
    ]);
    stored.catch((error: ServiceError) => this.#heal(kv, error));
    if (this.#parts.plant?.isAckEarly !== true) await stored;
  }

  async #text(key: string): Promise<string> {
    return String((await this.#kv?.get(key)) ?? "");
  }

  /** Opens the store again after a failed write, as the committer does. */
  #heal(kv: ReplicatedKeyValueStore, error: ServiceError): void {
    if (this.#outage !== undefined || this.#isReleased) return;
    const deps = { clock: this.scheduler.machine, logger: silentLogger };
    const outage = new WriteOutage(error, 1, deps);
    this.#outage = outage;
    void reopenStore(kv, this.scheduler, outage, this.#stop.signal, async () => undefined).then(
      () => (this.#outage = undefined),
    );
  }

  /** Gives the shard up in an orderly way: what it has accepted is stored first. The process goes on with the requests that it forwards, and then ends. */
  async release(): Promise<void> {
    this.#isReleased = true;
    this.#stop.abort();
    await this.#last;
    await this.#kv?.close();
    void this.#forwarder.idle().then(() => this.scheduler.after(50, () => this.kill()));
  }

  /** Ends the process at once. */
  kill(): void {
    if (this.scheduler.isDead) return;
    this.scheduler.kill();
    this.isListening = false;
    this.#owned?.disk.processEnded(this.scheduler);
    for (const listener of this.#exits) listener();
  }
}

const portOf = (address: PeerAddress | undefined): number | undefined =>
  address !== undefined && "port" in address ? address.port : undefined;

const textOf = (body: Uint8Array | string = ""): string =>
  typeof body === "string" ? body : Buffer.from(body).toString();

const refusal = (error: unknown): Answer => {
  if (!(error instanceof ServiceError)) throw error;
  return { status: 503, body: error.code };
};
