import { hkdfSync } from "node:crypto";
import { ServiceError } from "../model/errors.ts";

const MIN_BYTES = 32;

/** The keys that each node of a cluster derives from the cluster's secret. */
export interface ClusterKeys {
  /** The key of the connections between nodes. */
  readonly connections: Uint8Array;
  /** The secret that signs WebSocket tokens, if none is configured. */
  readonly tokens: string;
  /** A value that nodes compare to find out whether they have the same secret. It does not reveal the secret. */
  readonly check: string;
}

/**
 * Checks the length of a cluster's secret.
 * @throws ServiceError `config.invalid` if the secret is too short
 */
export function checkClusterSecret(secret: string): void {
  if (Buffer.byteLength(secret) >= MIN_BYTES) return;
  throw new ServiceError(
    "config.invalid",
    `A cluster needs a secret of ${MIN_BYTES} bytes or more, the same for all nodes: HEDDLE_CLUSTER_SECRET`,
  );
}

/** Derives the keys of one cluster. Another cluster gets other keys, even from the same secret. */
export function deriveClusterKeys(secret: string, cluster: string): ClusterKeys {
  const derive = (use: string): Buffer =>
    Buffer.from(hkdfSync("sha256", secret, cluster, `heddle ${use}`, MIN_BYTES));
  return {
    connections: derive("connections"),
    tokens: derive("tokens").toString("hex"),
    check: derive("check").toString("hex"),
  };
}
