import { ServiceError } from "../../../src/model/errors.ts";
import type { Membership } from "../../../src/ports/membership.ts";
import type { LogEntry, ShardLog } from "../../../src/ports/shard-log.ts";
import type { ShardSnapshots } from "../../../src/ports/shard-snapshots.ts";
import { MemoryMembership } from "../../../src/replication/memory-membership.ts";
import { MemoryShardLog } from "../../../src/replication/memory-shard-log.ts";
import { MemoryShardSnapshots } from "../../../src/replication/memory-shard-snapshots.ts";
import type { Machine, ProcessScheduler, Universe } from "./machine.ts";

/** Milliseconds after which a call without an answer fails. */
const CALL_TIMEOUT_MS = 1_500;
/** The longest time in milliseconds that an answer takes while the network is not calm. */
const SLOWEST_ANSWER_MS = 1_200;
/** Milliseconds between two attempts to get through where the network is cut. */
const KEPT_LOOK_MS = 40;
/** The longest time in milliseconds after which a call arrives whose caller has given up. */
const LATEST_ARRIVAL_MS = 4_000;

/** The log, with all entries that it ever had. */
class RecordedShardLog extends MemoryShardLog {
  readonly entries = new Map<number, LogEntry[]>();
  readonly #stored: (shard: number, entry: LogEntry) => void;

  constructor(isEpochChecked: boolean, stored: (shard: number, entry: LogEntry) => void) {
    super(isEpochChecked);
    this.#stored = stored;
  }

  override async append(shard: number, seq: number, epoch: number, batch: Uint8Array): Promise<void> {
    await super.append(shard, seq, epoch, batch);
    const entries = this.entries.get(shard) ?? [];
    entries.push({ seq, epoch, batch });
    this.entries.set(shard, entries);
    this.#stored(shard, { seq, epoch, batch });
  }
}

/** What a process reaches of the engine. */
export interface EngineLink {
  readonly log: ShardLog;
  readonly membership: Membership;
  readonly snapshots: ShardSnapshots;
}

interface EngineOptions {
  readonly universe: Universe;
  readonly leaseMs: number;
  /** False: only the positions in the log fence former owners off. */
  readonly isEpochChecked: boolean;
  stored(shard: number, entry: LogEntry): void;
}

/**
 * The database of the cluster, and the network between it and the nodes. Calls take time. While the network is not calm, some are lost, some
 * lose their answer, and some arrive when their caller has given up.
 */
export class SimulatedEngine {
  readonly log: RecordedShardLog;
  readonly membership: MemoryMembership;
  readonly snapshots: MemoryShardSnapshots;
  /** While the engine restarts, it answers nothing. */
  isDown = false;
  /** True once all faults have stopped. */
  isCalm = false;
  snapshotsMade = 0;
  /** Machines that cannot reach the engine. */
  readonly cut = new Set<Machine>();
  /** Machines whose reads of the log, and whose answers to renewals, take long. */
  readonly slow = new Set<Machine>();
  readonly #universe: Universe;
  /** Ends calls that are under way, as a restart of the engine does. */
  readonly #pending = new Set<() => void>();

  constructor({ universe, leaseMs, isEpochChecked, stored }: EngineOptions) {
    this.#universe = universe;
    this.log = new RecordedShardLog(isEpochChecked, stored);
    this.membership = new MemoryMembership(this.log, universe.clock, leaseMs);
    this.snapshots = new MemoryShardSnapshots(universe.clock);
  }

  restart(ms: number): void {
    this.isDown = true;
    for (const fail of this.#pending) fail();
    this.#universe.scheduler.after(ms, () => (this.isDown = false));
  }

  linkOf(process: ProcessScheduler): EngineLink {
    const { log, membership, snapshots, slow } = this;
    const call = <T>(work: () => Promise<T>, requestMs = 0, answerMs = 0): Promise<T> =>
      this.#call(process, work, { requestMs, answerMs });
    const made = (): void => void this.snapshotsMade++;
    const slowness = (): number => (slow.has(process.machine) ? 100 + this.#universe.random.below(600) : 0);
    async function* eachPart(parts: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
      for await (const part of parts) {
        await call(async () => undefined);
        yield part;
      }
    }
    return {
      log: {
        append: (...args) => call(() => log.append(...args)),
        read: (...args) => call(() => log.read(...args), slowness()),
        last: (...args) => call(() => log.last(...args)),
        extent: (...args) => call(() => log.extent(...args)),
        trim: (...args) => call(() => log.trim(...args)),
      },
      membership: {
        renew: (...args) => call(() => membership.renew(...args), 0, slowness()),
        view: () => call(() => membership.view()),
        take: (...args) => call(() => membership.take(...args)),
        give: (...args) => call(() => membership.give(...args)),
        setDraining: (...args) => call(() => membership.setDraining(...args)),
        leave: (...args) => call(() => membership.leave(...args)),
      },
      snapshots: {
        put: async (shard, seq, parts) => {
          const snapshot = await snapshots.put(shard, seq, eachPart(parts));
          made();
          return call(async () => snapshot);
        },
        list: (...args) => call(() => snapshots.list(...args)),
        prune: (...args) => call(() => snapshots.prune(...args)),
        read: (snapshot) => eachPart(snapshots.read(snapshot)),
      },
    };
  }

  /** `requestMs`, `answerMs`: the times that the request and the answer take in addition. */
  #call<T>(
    process: ProcessScheduler,
    work: () => Promise<T>,
    { requestMs, answerMs }: { readonly requestMs: number; readonly answerMs: number },
  ): Promise<T> {
    const { scheduler, random } = this.#universe;
    const isCut = (): boolean => this.cut.has(process.machine);
    return new Promise((resolve, reject) => {
      let isOver = false;
      const end = (settle: () => void): void =>
        process.run(() => {
          if (isOver) return;
          isOver = true;
          this.#pending.delete(fail);
          cancelTimeout();
          settle();
        });
      const fail = (): void =>
        end(() =>
          reject(new ServiceError("storage.unavailable", "The database of the cluster does not answer")),
        );
      const cancelTimeout = process.after(CALL_TIMEOUT_MS, fail);
      this.#pending.add(fail);
      const isLost = !this.isCalm && random.chance(0.01);
      const isLate = !this.isCalm && random.chance(0.01);
      const isAnswerLost = !this.isCalm && random.chance(0.01);
      const isAnswerSlow = !this.isCalm && random.chance(0.01);
      const isKept = random.chance(0.5);
      // A broken connection is noticed soon, or only by the timeout.
      if ((isLost || isLate) && random.chance(0.5)) scheduler.after(this.#delay(), fail);
      // What cannot get through is lost, or arrives when the network works again.
      const later = (act: () => void): void => {
        if (isKept) scheduler.after(KEPT_LOOK_MS, act);
      };
      const arrive = async (): Promise<void> => {
        if (isLost) return;
        if (isCut()) return later(() => void arrive());
        if (this.isDown) return void scheduler.after(this.#delay(), fail);
        const settled = await work().then(
          (value) => () => resolve(value),
          (error: unknown) => () => reject(error as Error),
        );
        if (isAnswerLost) {
          if (random.chance(0.5)) scheduler.after(this.#delay(), fail);
          return;
        }
        const answer = (): void => {
          if (isCut()) later(answer);
          else if (!this.isDown) end(settled);
        };
        scheduler.after(
          (isAnswerSlow ? random.float() * SLOWEST_ANSWER_MS : this.#delay()) + answerMs,
          answer,
        );
      };
      const delay = isLate ? random.float() * LATEST_ARRIVAL_MS : this.#delay();
      scheduler.after(delay + requestMs, () => void arrive());
    });
  }

  #delay(): number {
    const { random } = this.#universe;
    return random.chance(0.05) ? random.float() * 100 : 0.2 + random.float() * 2;
  }
}
