/**
 * Loaded by each process of a node before Heddle: it leads the connections to other nodes through the driver's router, and records which
 * process has which shard.
 */
import { appendFileSync } from "node:fs";
import { Socket } from "node:net";
import { hostOfNode, routedAddress } from "./node-hosts.ts";

const { CHAOS_NODE: node = "0", CHAOS_ROUTER: router = "0", CHAOS_OWNERS: owners = "" } = process.env;
const task = process.env["HEDDLE_SHARD_PROCESS"];

/**
 * A process of a node: the number of the node, its parent, its shard, and the epoch of its lease. A process that prepares for a shard has no
 * epoch at first, and a second line when it gets one.
 */
export interface OwnerLine {
  readonly node: number;
  readonly pid: number;
  readonly parent: number;
  readonly shard: number | undefined;
  readonly epoch?: number | undefined;
}

if (task !== undefined) {
  const { number, cluster } = JSON.parse(task) as {
    number?: number;
    cluster: { epoch?: number };
  };
  const line: OwnerLine = {
    node: Number(node),
    pid: process.pid,
    parent: process.ppid,
    shard: number,
  };
  const record = (epoch: number | undefined) =>
    appendFileSync(owners, `${JSON.stringify({ ...line, epoch })}\n`);
  record(cluster.epoch);
  if (cluster.epoch === undefined) {
    const { emit } = process;
    // Not a listener: with one, Node would deliver messages before Heddle listens, and they would be lost.
    process.emit = function recorded(this: NodeJS.Process, ...args: [string, ...unknown[]]) {
      const [name, message] = args;
      if (name === "message" && typeof message === "object" && message !== null && "epoch" in message)
        record(message.epoch as number);
      return Reflect.apply(emit, this, args) as boolean;
    } as typeof emit;
  }
}

interface Target {
  host?: string;
  port?: number | string;
}

const { connect } = Socket.prototype;
Socket.prototype.connect = function connectRouted(this: Socket, ...args: unknown[]) {
  // Node passes the arguments on as one array.
  const [first] = args;
  const target = (Array.isArray(first) ? first[0] : first) as Target | string | number | null | undefined;
  if (typeof target === "object" && target !== null && target.host !== undefined) {
    const other = hostOfNode(target.host);
    if (other !== undefined) {
      target.host = routedAddress(Number(node), other, Number(target.port));
      target.port = Number(router);
    }
  }
  return Reflect.apply(connect, this, args) as Socket;
} as typeof connect;
