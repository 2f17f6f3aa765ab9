import { ServiceError } from "../model/errors.ts";
import type { TransportOpener, Transport } from "../ports/transport.ts";
import { loadUws } from "./uws.ts";

export interface ChosenTransport {
  readonly kind: Transport["kind"];
  /** For the log: the name of the chosen build of uWebSockets.js, or the reason why another transport was chosen. */
  readonly why: string;
}

/**
 * Chooses a transport. Without `kind`: uWebSockets.js if it has a binary for this platform, else Node's own HTTP server. `kind` requires
 * one of these two, or a transport that does not listen (`none`).
 * @throws ServiceError `config.invalid` for any other kind; `unsupported` if uWebSockets.js is required and cannot be loaded
 */
export async function openTransport(kind?: Transport["kind"]): Promise<TransportOpener & ChosenTransport> {
  if (kind === "node") return viaNode("asked for");
  if (kind === "none") return viaNothing();
  if (kind !== undefined && kind !== "uws") {
    const message = `The transport must be "uws", "node" or "none", not ${JSON.stringify(kind satisfies never)}`;
    throw new ServiceError("config.invalid", message);
  }
  try {
    const { open, name } = await loadUws();
    const choice: ChosenTransport = { kind: "uws", why: name };
    return Object.assign<TransportOpener, ChosenTransport>((...args) => open(...args), choice);
  } catch (cause) {
    const why = whyUwsDoesNotLoad(cause);
    if (kind === "uws")
      throw new ServiceError(
        "unsupported",
        `uWebSockets cannot be used: ${why}; choose the transport "node"`,
        { cause },
      );
    return viaNode(why);
  }
}

/** Explains why uWebSockets.js cannot be loaded: the system's glibc is too old, or there is no binary. */
export function whyUwsDoesNotLoad(cause: unknown): string {
  const causes: readonly unknown[] = cause instanceof AggregateError ? cause.errors : [cause];
  const build = `uWebSockets for Node ${process.version} on ${process.platform} ${process.arch}`;
  const glibc = /GLIBC_([\d.]+)' not found/.exec(causes.map(String).join("\n"))?.[1];
  return glibc === undefined
    ? `no ${build} is installed`
    : `${build} needs glibc ${glibc} or later, which this system does not have`;
}

/** A transport that does not listen anywhere. */
function viaNothing(): TransportOpener & ChosenTransport {
  const choice: ChosenTransport = { kind: "none", why: "asked for" };
  const open: TransportOpener = async (_, { host }) => ({
    kind: "none",
    address: { host, port: 0 },
    startDraining: () => undefined,
    stopListening: () => undefined,
    close: async () => undefined,
  });
  return Object.assign(open, choice);
}

async function viaNode(why: string): Promise<TransportOpener & ChosenTransport> {
  const { openNode } = await import("./node.ts");
  const choice: ChosenTransport = { kind: "node", why };
  return Object.assign<TransportOpener, ChosenTransport>((...args) => openNode(...args), choice);
}
