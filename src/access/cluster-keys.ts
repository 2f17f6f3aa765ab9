import { hkdfSync } from "node:crypto";
import { ServiceError } from "../model/errors.ts";

const MIN_BYTES = 32;

/** The keys that each node of a cluster derives from the cluster's secret. */
export interface ClusterKeys {
  /** The pre-shared key for connections between nodes. */
  readonly connections: Uint8Array;
  /** The secret with which WebSocket tokens are signed if none is configured. */
  readonly tokens: string;
  /** A value that nodes compare to find out whether they have the same secret. It does not reveal the secret. */
  readonly check: string;
}

/** Checks that a cluster's secret is long enough. @throws ServiceError `config.invalid` if it is not */
export function checkClusterSecret(secret: string): void {
  if (Buffer.byteLength(secret) >= MIN_BYTES) return;
  throw new ServiceError(
    "config.invalid",
    `A cluster needs a secret of ${MIN_BYTES} bytes or more, the same for all nodes: HEDDLE_CLUSTER_SECRET`,
  );
}

/** Derives the keys of the cluster with the id `cluster`. Another cluster gets other keys, even from the same secret. */
export function deriveClusterKeys(secret: string, cluster: string): ClusterKeys {
  const derive = (use: string): Buffer =>
    Buffer.from(hkdfSync("sha256", secret, cluster, `heddle ${use}`, MIN_BYTES));
  return {
    connections: derive("connections"),
    tokens: derive("tokens").toString("hex"),
    check: derive("check").toString("hex"),
  };
}
