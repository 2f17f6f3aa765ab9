import type { ClusterView } from "../ports/membership.ts";
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
export const nodeNameOf = (id: string): string => id.slice(0, id.lastIndexOf("/"));

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
