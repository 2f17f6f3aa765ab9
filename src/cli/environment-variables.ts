import { similarName } from "../model/similar-name.ts";

type Env = { readonly [name: string]: string | undefined };

const PREFIX = "HEDDLE_";

/** The environment variables that a server reads and that begin with `HEDDLE_`. */
export const ENVIRONMENT_VARIABLES = [
  "HEDDLE_CONFIG",
  "HEDDLE_HOST",
  "HEDDLE_PORT",
  "HEDDLE_DATA",
  "HEDDLE_TRANSPORT",
  "HEDDLE_WORKERS",
  "HEDDLE_SHARDS",
  "HEDDLE_CLUSTER",
  "HEDDLE_NODE",
  "HEDDLE_CLUSTER_SECRET",
  "HEDDLE_CLUSTER_SCHEMA",
  "HEDDLE_CLUSTER_HOST",
  "HEDDLE_CLUSTER_LEASE",
  "HEDDLE_CLUSTER_SNAPSHOT",
  "HEDDLE_HANG_LIMIT",
  "HEDDLE_START_LIMIT",
  "HEDDLE_INSECURE",
  "HEDDLE_API_KEYS",
  "HEDDLE_TOKEN_SECRET",
  "HEDDLE_ALLOWED_HOSTS",
  "HEDDLE_CORS_ALLOW_ORIGINS",
  "HEDDLE_MOUNT_PREFIX",
  "HEDDLE_WEBHOOK_SECRET",
  "HEDDLE_MAX_BODY",
  "HEDDLE_STREAMS_SYNC",
  "HEDDLE_LOG",
  "HEDDLE_LOG_FORMAT",
  "HEDDLE_REQUEST_LOG",
] as const;

/**
 * Warnings about variables that begin with `HEDDLE_` but that no server reads, such as misspelt ones. They contain only names, because a
 * value may be a secret.
 */
export function warningsOfVariables(env: Env): readonly string[] {
  const known: readonly string[] = ENVIRONMENT_VARIABLES;
  const hasKeys = (env["HEDDLE_API_KEYS"] ?? "") !== "";
  return Object.keys(env)
    .filter((name) => name.startsWith(PREFIX) && env[name] !== "" && !known.includes(name))
    .filter((name) => !isOfKubernetes(name, env[name] ?? "") && !(name === "HEDDLE_API_KEY" && hasKeys))
    .map((name) => {
      const names = ENVIRONMENT_VARIABLES.map((variable) => variable.slice(PREFIX.length));
      const similar = similarName(name.slice(PREFIX.length), names);
      const meant = similar === undefined ? undefined : PREFIX + similar;
      const hint = meant === undefined ? '"heddle --help" lists them' : `did you mean ${meant}?`;
      return `${name} is none of Heddle's variables; ${hint}`;
    });
}

/** Whether Kubernetes sets the variable. It sets such variables in pods if there is a service whose name begins with `heddle`. */
const isOfKubernetes = (name: string, value: string): boolean =>
  /_SERVICE_(?:HOST|PORT)|_PORT_\d/.test(name) || /^(?:tcp|udp|sctp):\/\//.test(value);
