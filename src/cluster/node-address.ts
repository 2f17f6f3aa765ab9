import { ServiceError } from "../model/errors.ts";
import type { ClusterNode, ClusterView } from "../ports/membership.ts";
import type { PeerAddress } from "../ports/peers.ts";

/** What a node tells the others of itself, as the text of its address. */
export interface NodeAddress {
  /** Its URL for clients; empty while it starts. */
  readonly url: string;
  /** The host at which its processes listen for other nodes. */
  readonly host: string;
  /** The port of each shard's process. */
  readonly ports: { readonly [shard: number]: number };
  /** What nodes with the same secret have in common. */
  readonly check: string;
}

export const parseNodeAddress = (text: string): NodeAddress => JSON.parse(text) as NodeAddress;

/** The name of a node, without what makes its id unique. */
export const nodeNameOf = (id: string): string => id.replace(/\/[^/]*$/, "");

/** @throws ServiceError `config.invalid` if a node has another secret than the one that this is the `check` of */
export function checkSameSecret(nodes: readonly ClusterNode[], check: string): void {
  const stranger = nodes.find(({ address }) => parseNodeAddress(address).check !== check);
  if (stranger === undefined) return;
  throw new ServiceError(
    "config.invalid",
    `The node ${nodeNameOf(stranger.id)} of this cluster has another secret: HEDDLE_CLUSTER_SECRET must be the same for all nodes. ` +
      "For a second cluster in the same database, set HEDDLE_CLUSTER_SCHEMA",
  );
}

/** Whether a node serves clients, so that it can take shards from others. */
export const isReady = ({ address }: ClusterNode): boolean => parseNodeAddress(address).url !== "";

/** Whether the process of a shard listens. */
export function isServed(shard: number, { nodes, owners }: ClusterView): boolean {
  const owner = owners.find((one) => one.shard === shard)?.node;
  const node = nodes.find(({ id }) => id === owner);
  return node !== undefined && parseNodeAddress(node.address).ports[shard] !== undefined;
}

/** Where the processes of all shards listen that have an owner. */
export function routesOf({ nodes, owners }: ClusterView): readonly (readonly [shard: number, PeerAddress])[] {
  const addresses = new Map(nodes.map(({ id, address }) => [id, parseNodeAddress(address)]));
  return owners.flatMap(({ shard, node }) => {
    const address = addresses.get(node);
    const port = address?.ports[shard];
    return address === undefined || port === undefined
      ? []
      : [[shard, { host: address.host, port }] as const];
  });
}
