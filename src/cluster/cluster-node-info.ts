import { ServiceError } from "../model/errors.ts";
import type { ClusterMember, ClusterNode, ClusterView } from "../ports/membership.ts";
import type { PeerAddress } from "../ports/peers.ts";

/** What a node publishes about itself. It is stored as JSON in the field `address` of a {@link ClusterNode}. */
export interface ClusterNodeInfo {
  /** The URL of the node for clients; empty until the node accepts requests. */
  readonly url: string;
  /** The host on which the node's processes listen for requests of other nodes. */
  readonly host: string;
  /** The port on which the process of each shard listens, by shard number. */
  readonly ports: { readonly [shard: number]: number };
  /**
   * The shards of other nodes that the node follows, so that it can take them if those nodes die, each with the position of the last entry
   * of the shard's log that the node has. Absent: the node has an older version, which follows none.
   */
  readonly followed?: { readonly [shard: number]: number };
  /**
   * The shards for which the node has prepared: it has their data, and can serve them soon after it has taken them. Absent: the node has an
   * older version, which takes shards without preparation.
   */
  readonly prepared?: readonly number[];
  /** A value derived from the cluster secret. Nodes compare it to check that they have the same secret. */
  readonly check: string;
}

export const parseClusterNodeInfo = (text: string): ClusterNodeInfo => JSON.parse(text) as ClusterNodeInfo;

/** The name of a node: its id without the random suffix that makes ids unique. */
export const nodeNameOf = (id: string): string => id.replace(/\/[^/]*$/, "");

/**
 * Checks that all nodes have the same secret.
 * @throws ServiceError `config.invalid` if the secret of a node differs from the secret from which `check` was derived
 */
export function checkSameSecret(nodes: readonly ClusterNode[], check: string): void {
  const stranger = nodes.find(({ address }) => parseClusterNodeInfo(address).check !== check);
  if (stranger === undefined) return;
  throw new ServiceError(
    "config.invalid",
    `The node ${nodeNameOf(stranger.id)} of this cluster has another secret: HEDDLE_CLUSTER_SECRET must be the same for all nodes. ` +
      "For a second cluster in the same database, set HEDDLE_CLUSTER_SCHEMA",
  );
}

/** Whether a node accepts requests of clients. */
export const isReady = ({ address }: ClusterNode): boolean => parseClusterNodeInfo(address).url !== "";

/** Whether a node can take shards from other nodes: it accepts requests, and is not draining. */
export const canTakeShards = (node: ClusterMember): boolean => !node.isDraining && isReady(node);

/** Whether any node except the node with this id can take shards. */
export const canAnotherNodeTakeShards = ({ nodes }: ClusterView, id: string): boolean =>
  nodes.some((node) => node.id !== id && canTakeShards(node));

/** Whether a node has prepared to serve a shard. */
export const isPrepared = (shard: number, { address }: ClusterNode): boolean =>
  parseClusterNodeInfo(address).prepared?.includes(shard) ?? true;

/** Whether the process of a shard listens for requests. */
export function isServed(shard: number, { nodes, owners }: ClusterView): boolean {
  const owner = owners.find((one) => one.shard === shard)?.node;
  const node = nodes.find(({ id }) => id === owner);
  return node !== undefined && parseClusterNodeInfo(node.address).ports[shard] !== undefined;
}

/** The addresses of the processes of shards. A shard without an owner, or whose process does not listen yet, is left out. */
export function shardAddressesOf({
  nodes,
  owners,
}: ClusterView): readonly (readonly [shard: number, PeerAddress])[] {
  const addresses = new Map(nodes.map(({ id, address }) => [id, parseClusterNodeInfo(address)]));
  return owners.flatMap(({ shard, node }) => {
    const address = addresses.get(node);
    const port = address?.ports[shard];
    return address === undefined || port === undefined
      ? []
      : [[shard, { host: address.host, port }] as const];
  });
}
