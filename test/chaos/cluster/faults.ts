import { setTimeout as sleep } from "node:timers/promises";
import type { PostgresServer } from "../../postgres/postgres-server.ts";
import type { SeededRandom } from "../random.ts";
import { type Break, Network } from "./network.ts";
import type { NodeProcess } from "./node-process.ts";

/** The relative frequency of each fault. */
const MIX = {
  "kill a node": 5,
  "kill the parent of a node": 2,
  "kill the process of a shard": 3,
  "pause a node": 5,
  "pause the parent of a node": 2,
  "pause the process of a shard": 2,
  "break the link to the database": 4,
  "break the link between two nodes": 4,
  "restart the database": 3,
  "stop a node": 4,
} as const;

export type FaultName = keyof typeof MIX;
export const FAULTS = Object.keys(MIX) as readonly FaultName[];

/** Milliseconds: the limit for a graceful stop. A node gives its shards up for at most 25 seconds. */
const STOP = 40_000;

export interface FaultDeps {
  readonly nodes: readonly NodeProcess[];
  readonly network: Network;
  readonly postgres: PostgresServer;
  readonly leaseMs: number;
  readonly dice: SeededRandom;
  /** Reports that a node did not stop as it should. */
  readonly wrong: (message: string, node: NodeProcess) => void;
}

/** Causes one fault, chosen by the dice, and ends it. Returns what was done; the nodes that were ended have been started again. */
export async function causeFault(deps: FaultDeps, name?: FaultName): Promise<string> {
  const { nodes, network, postgres, leaseMs, dice, wrong } = deps;
  const which = name ?? dice.weighted(MIX);
  const number = dice.between(0, nodes.length - 1);
  const node = nodes[number] as NodeProcess;
  const rest = dice.chance(0.5) ? dice.between(0, 300) : dice.between(300, 3 * leaseMs);
  /** Longer than a lease, so that other nodes take the shards over. */
  const pause = dice.between(leaseMs + 500, 4 * leaseMs);
  const how: Break = dice.pick(["cut", "silent"]);
  const broken = dice.chance(0.3) ? dice.between(50, leaseMs) : pause;
  const shards = node.shardProcesses();
  switch (which) {
    case "kill a node":
    case "kill the parent of a node": {
      await node.kill(which === "kill a node" ? "all" : "parent");
      await sleep(rest);
      node.start();
      return `${which} (${number}), start it ${rest} ms later`;
    }
    case "kill the process of a shard":
    case "pause the process of a shard": {
      if (shards.length === 0) return causeFault(deps, "kill a node");
      const { shard, pid } = dice.pick(shards);
      if (which === "kill the process of a shard") {
        node.signal("SIGKILL", { pid });
        return `${which} (${shard} of node ${number})`;
      }
      node.signal("SIGSTOP", { pid });
      await sleep(pause);
      node.signal("SIGCONT", { pid });
      return `${which} (${shard} of node ${number}) for ${pause} ms`;
    }
    case "pause a node":
    case "pause the parent of a node": {
      const to = which === "pause a node" ? "all" : "parent";
      node.signal("SIGSTOP", to);
      await sleep(pause);
      node.signal("SIGCONT", to);
      return `${which} (${number}) for ${pause} ms`;
    }
    case "break the link to the database":
    case "break the link between two nodes": {
      const other = (number + dice.between(1, nodes.length - 1)) % nodes.length;
      const toDatabase = which === "break the link to the database";
      const link = toDatabase ? Network.toDatabase(number) : Network.between(number, other);
      network.break(link, how);
      await sleep(broken);
      network.mend(link);
      return `${which} (${link}, ${how}) for ${broken} ms`;
    }
    case "restart the database": {
      await postgres.stopAtOnce();
      await sleep(rest);
      await postgres.start();
      return `${which} after ${rest} ms`;
    }
    case "stop a node": {
      const began = performance.now();
      const end = await node.stop(STOP);
      const took = Math.round(performance.now() - began);
      if (end !== "0")
        wrong(
          `node ${number} was asked to stop, and ${end === undefined ? `had not ended after ${took} ms` : `ended with ${end}`}`,
          node,
        );
      if (end === undefined) await node.kill();
      await sleep(rest);
      node.start();
      return `${which} (${number}, which took ${took} ms), start it ${rest} ms later`;
    }
  }
}
