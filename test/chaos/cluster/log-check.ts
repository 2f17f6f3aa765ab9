import { unpackWriteBatch } from "../../../src/codec/value-encoding.ts";
import { shardOf } from "../../../src/model/shard-of.ts";
import type { KeyValueStore } from "../../../src/ports/key-value-store.ts";
import type { ShardLog } from "../../../src/ports/shard-log.ts";
import { APPLIED_KEY, decodePosition } from "../../../src/replication/log-applier.ts";
import { MemoryKeyValueStore } from "../../../src/storage/memory-key-value-store.ts";
import { storedResults, recordsGrow } from "../checkers/machines.ts";
import { finishedTasks, oneRunAtATime } from "../checkers/repeats.ts";
import { eventsAreContiguous, indexesAgree, stateIsTheFold } from "../checkers/stored.ts";
import { nothingHiddenIsLeft } from "../checkers/stateless.ts";
import type { Effect } from "../effects.ts";
import type { Violation } from "../ledger.ts";
import { readStorage, type Snapshot } from "../snapshot.ts";
import type { OwnerLine } from "./node-preload.ts";

/** The bytes of entries that are read at once. */
const PAGE = 4 * 1024 * 1024;
const EVERYTHING = { gte: "", lt: "\x7f" };

export interface LogCheckOptions {
  /** It has been trimmed nowhere. */
  readonly log: Pick<ShardLog, "read">;
  readonly shards: number;
  /** Opens what the nodes have of a shard in their own directories. They are closed after the check. */
  copiesOf(shard: number): Promise<readonly LocalCopy[]>;
  readonly effects: readonly Effect[];
  readonly owners: readonly OwnerLine[];
  /** Whether the time is over for which threads of runs without a thread are kept. */
  readonly isLingerOver: boolean;
  readonly found: (violation: Violation) => void;
}

/** The database of a shard in the directory of a node. */
export interface LocalCopy {
  readonly node: string;
  readonly store: KeyValueStore;
}

export interface LogCounts {
  entries: number;
  takeovers: number;
  /** Tasks that were begun by several owners of a shard. Each was looked up in the log. */
  begunAgain: number;
  /** Databases of nodes that were compared with the log. */
  copies: number;
}

/**
 * Reads the whole log of each shard, and checks what each takeover found: no entry of a former owner comes after it, and no task begins again
 * whose result the log had by then. The nodes' own databases have to be what the log makes up to their positions. What the whole log makes has to agree with itself.
 */
export async function checkLogs(options: LogCheckOptions): Promise<LogCounts> {
  const counts = { entries: 0, takeovers: 0, begunAgain: 0, copies: 0 };
  for (let shard = 0; shard < options.shards; shard++) await checkLog(shard, options, counts);
  return counts;
}

async function checkLog(
  shard: number,
  { log, shards, effects, owners, isLingerOver, found, copiesOf }: LogCheckOptions,
  counts: LogCounts,
): Promise<void> {
  const epochs = new Map(
    owners.flatMap(({ shard: of, pid, epoch }) =>
      of === shard && epoch !== undefined ? [[pid, epoch] as const] : [],
    ),
  );
  // Each epoch has one process: in the order of epochs, the effects of a process that did not yet know that it had lost the shard come
  // before those of the next owner.
  const own = effects
    .filter(({ thread, pid }) => epochs.has(pid) && shardOf(thread, shards) === shard)
    .map((effect) => ({ effect, epoch: epochs.get(effect.pid) ?? 0 }))
    .toSorted((one, other) => one.epoch - other.epoch);
  for (const violation of oneRunAtATime(own.map(({ effect }) => effect))) found(violation);
  const store = new MemoryKeyValueStore();
  await store.open();
  const copies = await Promise.all(
    (await copiesOf(shard)).map(async (copy) => {
      const position = await copy.store.get(APPLIED_KEY);
      return { ...copy, position: position === undefined ? [0, 0] : decodePosition(position) };
    }),
  );
  let [last, epoch] = [0, 0];
  for (;;) {
    const entries = await log.read(shard, last + 1, PAGE);
    if (entries.length === 0) break;
    for (const { seq, epoch: by, batch } of entries) {
      const ops = unpackWriteBatch(batch);
      counts.entries++;
      if (seq !== last + 1)
        found({ invariant: "log", message: `shard ${shard}: entry ${seq} follows ${last}`, evidence: {} });
      if (by < epoch) {
        const message = `shard ${shard}: entry ${seq} is of epoch ${by}, after one of epoch ${epoch}`;
        found({ invariant: "zombie", message, evidence: { ops: ops.map(({ key }) => key) } });
      }
      if (by > epoch) {
        counts.takeovers++;
        if (ops.length > 0)
          found({
            invariant: "zombie",
            message: `shard ${shard}: epoch ${by} begins at entry ${seq} with a change`,
            evidence: {},
          });
        await checkTakeover(store, own, by);
        epoch = by;
      }
      if (ops.length > 0) await store.batch(ops, { sync: false });
      last = seq;
      for (const copy of copies) if (copy.position[0] === seq) await compareCopy(copy);
    }
  }
  for (const { node, position, store: local } of copies) {
    if ((position[0] ?? 0) > last)
      found({
        invariant: "zombie",
        message: `shard ${shard}: node ${node} has entry ${position[0]}, and the log ends at ${last}`,
        evidence: {},
      });
    await local.close();
  }
  const whole = await look(store);
  for (const violation of [
    ...eventsAreContiguous(whole),
    ...stateIsTheFold(whole),
    ...indexesAgree(whole),
    ...recordsGrow(whole),
    ...(isLingerOver ? nothingHiddenIsLeft(whole) : []),
  ]) {
    found(violation);
  }

  /** Checks that a node has stored what the log says up to its position, and nothing else. */
  async function compareCopy({ node, position, store: local }: (typeof copies)[number]): Promise<void> {
    counts.copies++;
    const [have, due] = [await contentsOf(local), await contentsOf(store)];
    have.delete(APPLIED_KEY);
    const differing = [...new Set([...have.keys(), ...due.keys()])].filter((key) => {
      const [one, other] = [have.get(key), due.get(key)];
      return one === undefined || other === undefined || !one.equals(other);
    });
    if (position[1] === epoch && differing.length === 0) return;
    found({
      invariant: "zombie",
      message: `shard ${shard}: the database of node ${node} at entry ${position[0]} is not what the log makes`,
      evidence: { epoch, position, differing: differing.slice(0, 10) },
    });
  }

  /** Checks that the owner with this epoch, and later ones, begin nothing again whose result is in the store. */
  async function checkTakeover(
    before: MemoryKeyValueStore,
    all: readonly { readonly effect: Effect; readonly epoch: number }[],
    next: number,
  ): Promise<void> {
    const keyOf = ({ run, task }: Effect) => `${run} ${task}`;
    const begun = all.filter((one) => one.epoch < next).map(({ effect }) => effect);
    const known = new Set(begun.map(keyOf));
    const again = all
      .filter((one) => one.epoch >= next && known.has(keyOf(one.effect)))
      .map(({ effect }) => effect);
    if (again.length === 0) return;
    counts.begunAgain += again.filter(({ pid }) => epochs.get(pid) === next).length;
    const stored = await look(before, new Set(again.map(({ thread }) => thread)));
    const finished = new Map(
      [...finishedTasks(stored, begun), ...storedResults(stored, begun)].map((one) => [
        `${one.run} ${one.task}`,
        one,
      ]),
    );
    for (const effect of again) {
      const why = finished.get(keyOf(effect));
      if (why === undefined) continue;
      found({
        invariant: "I2",
        message: `node ${effect.node} of run ${effect.run} ran again in epoch ${epochs.get(effect.pid)}, although ${why.why} before epoch ${next}`,
        evidence: { effect, why: why.why, begun: begun.filter((one) => keyOf(one) === keyOf(effect)) },
      });
    }
  }
}

async function contentsOf(store: KeyValueStore): Promise<Map<string, Buffer>> {
  const contents = new Map<string, Buffer>();
  for await (const [key, value] of store.entries(EVERYTHING)) contents.set(key, value);
  return contents;
}

/** Reads a copy of the store, because opening a storage may write. */
async function look(store: MemoryKeyValueStore, only?: ReadonlySet<string>): Promise<Snapshot> {
  const copy = new MemoryKeyValueStore();
  await copy.open();
  const contents = await contentsOf(store);
  await copy.batch(
    [...contents].map(([key, value]) => ({ key, value })),
    { sync: false },
  );
  return readStorage({ kind: "key-value", store: copy }, only);
}
