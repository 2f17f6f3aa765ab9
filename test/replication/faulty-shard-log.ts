import { ServiceError } from "../../src/model/errors.ts";
import type { LogEntry, LogExtent, ShardLog } from "../../src/ports/shard-log.ts";

/**
 * What happens to an append: it is answered; it fails and is never stored; it is stored, and its answer is lost; or it fails, and is
 * stored later, when a further call is made.
 */
export type AppendFault = "none" | "before" | "lost" | "late";

const unanswered = (): ServiceError => new ServiceError("storage.unavailable", "The log does not answer");

/** A log as one node reaches it, over a connection that breaks as the test says. */
export class FaultyShardLog implements ShardLog {
  /** The faults of the next appends. */
  readonly faults: AppendFault[] = [];
  /** True: nothing is answered. */
  isDown = false;
  /** Called while the answer to a stored append is being lost. */
  whenLost: (() => Promise<void>) | undefined;
  readonly #log: ShardLog;
  #late: (() => Promise<void>)[] = [];

  constructor(log: ShardLog) {
    this.#log = log;
  }

  async append(shard: number, seq: number, epoch: number, batch: Uint8Array): Promise<void> {
    if (this.isDown) throw unanswered();
    const fault = this.faults.shift() ?? "none";
    const append = () => this.#log.append(shard, seq, epoch, batch);
    if (fault === "before") throw unanswered();
    if (fault === "late") {
      this.#late.push(() => append().catch(() => undefined));
      throw unanswered();
    }
    await append();
    if (fault === "lost") {
      await this.whenLost?.();
      throw unanswered();
    }
  }

  async read(shard: number, from: number, limitBytes: number): Promise<readonly LogEntry[]> {
    if (this.isDown) throw unanswered();
    return this.#log.read(shard, from, limitBytes);
  }

  async last(shard: number): Promise<number> {
    if (this.isDown) throw unanswered();
    return this.#log.last(shard);
  }

  async extent(shard: number, from: number): Promise<LogExtent> {
    if (this.isDown) throw unanswered();
    return this.#log.extent(shard, from);
  }

  trim(shard: number, below: number): Promise<void> {
    return this.#log.trim(shard, below);
  }

  /** Stores the late appends, as far as the log accepts them. */
  async deliver(): Promise<void> {
    const late = this.#late;
    this.#late = [];
    for (const append of late) await append();
  }
}
