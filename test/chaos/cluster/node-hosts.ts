/**
 * The addresses of nodes, all on the loopback device. A node listens at an address of its own. Another address of the router says which
 * node connects to which port of which node.
 */
const NODE_HOST = /^127\.0\.0\.1(\d)$/;
/** The first of the second numbers of the router's addresses. */
const FIRST = 64;
/** There are fewer nodes than this. */
const NODES = 8;

export const nodeHost = (node: number): string => `127.0.0.1${node}`;

/** The number of the node that listens at this address; undefined for any other address. */
export function hostOfNode(host: string): number | undefined {
  const [, node] = NODE_HOST.exec(host) ?? [];
  return node === undefined ? undefined : Number(node);
}

export const routedAddress = (from: number, to: number, port: number): string =>
  `127.${FIRST + from * NODES + to}.${port >> 8}.${port & 255}`;

/** What an address of the router says. */
export function readRoutedAddress(address: string): { from: number; to: number; port: number } {
  const [, link = 0, high = 0, low = 0] = address.replace("::ffff:", "").split(".").map(Number);
  return { from: Math.floor((link - FIRST) / NODES), to: (link - FIRST) % NODES, port: high * 256 + low };
}
