import type { PeerRequest } from "../../../src/ports/peers.ts";
import type { ShardLog } from "../../../src/ports/shard-log.ts";
import { LogApplier, TAKEOVER_ENTRY } from "../../../src/replication/log-applier.ts";

/** A fault that is planted into the simulated cluster: it replaces some of what a process does. */
export interface ClusterPlant {
  /** Replaces the log that a process uses. */
  log?(log: ShardLog): ShardLog;
  /**
   * Replaces the end of the leases by which a node judges whether it may answer. All times are in milliseconds. `now`: when the answer to the
   * renewal came.
   */
  leaseEnd?(renewal: { readonly validUntil: number; readonly now: number; readonly leaseMs: number }): number;
  /** Replaces a request that a process forwards. */
  forwarded?(request: PeerRequest): PeerRequest;
  /** A write is acknowledged before it is stored. */
  readonly isAckEarly?: boolean;
  /** Plants a part of the fault in the code of the server. Returns a function that removes it. */
  plant?(): () => void;
}

const isTakeover = (batch: Uint8Array): boolean => Buffer.compare(batch, TAKEOVER_ENTRY) === 0;

/** An owner begins without an entry of its own in the log. */
const noTakeover: ClusterPlant = {
  log: (log) => ({
    append: async (shard, seq, epoch, batch) => {
      if (!isTakeover(batch)) await log.append(shard, seq, epoch, batch);
    },
    read: (...args) => log.read(...args),
    last: (...args) => log.last(...args),
    extent: (...args) => log.extent(...args),
    trim: (...args) => log.trim(...args),
  }),
  plant() {
    const { prototype } = LogApplier;
    const sound = Object.getOwnPropertyDescriptor(prototype, "apply") as PropertyDescriptor;
    const apply = sound.value as LogApplier["apply"];
    const planted: LogApplier["apply"] = function (this: LogApplier, seq, epoch, ops) {
      // No entry of the log is empty, so this is the takeover entry, which the log does not have.
      return ops.length === 0 ? Promise.resolve() : apply.call(this, seq, epoch, ops);
    };
    Object.defineProperty(prototype, "apply", { ...sound, value: planted });
    return () => void Object.defineProperty(prototype, "apply", sound);
  },
};

export const clusterPlants = {
  "no-takeover": noTakeover,
  /** A node relies on its leases for their whole time by its own clock, from the answer to a renewal on. */
  "no-margin": { leaseEnd: ({ now, leaseMs }) => now + leaseMs },
  /** A node goes on answering after its leases have ended. */
  "late-lease": { leaseEnd: ({ validUntil, leaseMs }) => validUntil + leaseMs },
  "ack-early": { isAckEarly: true },
  /** A request that is forwarded may be sent again, but has no key. */
  "no-key": {
    forwarded: ({ headers, ...request }) => {
      const { "idempotency-key": _, ...others } = headers;
      return { ...request, headers: others };
    },
  },
} as const satisfies { readonly [name: string]: ClusterPlant };

export type ClusterPlantName = keyof typeof clusterPlants;
