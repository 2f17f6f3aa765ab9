import {
  type Config,
  isPositiveInteger,
  isStreamSync,
  isWorkerCount,
  STREAM_SYNC_MODES,
} from "../config/config.ts";
import { parsePathPrefix } from "../access/http-config.ts";
import { isLogLevel, type LogLevel } from "../platform/log.ts";
import { ServiceError } from "../model/errors.ts";
import type { ClusterSettings } from "./cluster-node.ts";
import type { ClusterDatabaseLocation } from "./cluster-child.ts";
import { SHORTEST_HANG_LIMIT_MS, SHORTEST_START_LIMIT_MS } from "./child-process-watchdog.ts";
import {
  findGivenOption,
  type GivenOption,
  isPort,
  listOption,
  numberOption,
  type OptionFlags,
  refuseOption,
  textOption,
  type Variables,
} from "./options.ts";

export const DEFAULT_PORT = 2024;

export type LogFormat = "json" | "text";

/**
 * Settings from the command line and the environment. If an optional setting is absent, the configuration file decides, or else its default
 * applies.
 */
export interface Settings {
  readonly host: string;
  /** The port on which to listen. Absent if none was named. */
  readonly port?: number;
  readonly data: string;
  readonly level: LogLevel;
  /** The format of the log and of the start message. Absent: text on a terminal, JSON lines elsewhere. */
  readonly log?: LogFormat;
  readonly transport?: "uws" | "node";
  readonly maxBody?: number;
  readonly workers?: number;
  /**
   * The number of processes that serve together, each with one shard. In a cluster: the number of shards of a new cluster. Absent: one
   * process, or the cluster's number.
   */
  readonly shards?: number;
  /** The cluster that the server joins. Absent: no cluster. */
  readonly cluster?: ClusterSettings;
  /**
   * A process of a shard that responds to nothing for this time in milliseconds is killed and started again. 0: never. Absent: the default.
   */
  readonly hangLimitMs?: number;
  /**
   * A process of a shard that neither accepts requests nor reports progress for this time in milliseconds after its start is killed and
   * started again. 0: never. Absent: the default.
   */
  readonly startLimitMs?: number;
  readonly sync?: NonNullable<Config["sync"]>;
  /** Allows the server to listen on other addresses than loopback without credentials. */
  readonly insecure?: true;
  readonly requestLog?: LogLevel;
  readonly hosts?: readonly string[];
  readonly origins?: readonly string[];
  readonly mount?: string;
  readonly webhooks?: { readonly secret: string };
}

/**
 * Reads the settings from flags and variables. `data`: the data directory if neither a flag nor a variable names one.
 * @throws ServiceError `config.invalid`; the message names the flag or variable
 */
export function settingsOf(flags: OptionFlags, env: Variables, data: string): Settings {
  const find = (flag: keyof OptionFlags | null, ...names: readonly string[]) =>
    findGivenOption(flags, env, flag, ...names);
  const host = find("host", "HEDDLE_HOST", "HOST");
  const hosts = listOption(find(null, "HEDDLE_ALLOWED_HOSTS"));
  const origins = listOption(find(null, "HEDDLE_CORS_ALLOW_ORIGINS", "CORS_ALLOW_ORIGINS"));
  const prefix = find(null, "HEDDLE_MOUNT_PREFIX", "MOUNT_PREFIX");
  const mount = parsePathPrefix(prefix?.value, (what) => refuseOption(prefix as GivenOption, what));
  const requestLog = textOption(find(null, "HEDDLE_REQUEST_LOG"), isLogLevel, NO_LEVEL);
  const transport = textOption(find("transport", "HEDDLE_TRANSPORT"), isTransport, "is not uws or node");
  const sync = textOption(
    find(null, "HEDDLE_STREAMS_SYNC"),
    isStreamSync,
    `is not one of ${STREAM_SYNC_MODES.join(", ")}`,
  );
  const maxBody = numberOption(
    find(null, "HEDDLE_MAX_BODY"),
    isPositiveInteger,
    "is not a whole number of bytes, 1 or more",
  );
  const workers = numberOption(
    find("workers", "HEDDLE_WORKERS"),
    isWorkerCount,
    "is not a whole number from 0 to 64",
  );
  const cluster = clusterOf(find, env);
  const askedShards = find("shards", "HEDDLE_SHARDS");
  const shards =
    cluster === undefined
      ? numberOption(askedShards, isShardCount, "is not a whole number from 2 to 64")
      : numberOption(
          askedShards,
          (count) => count === 1 || isShardCount(count),
          "is not a whole number from 1 to 64",
        );
  const limitOption = (name: string, shortest: number): number | undefined =>
    numberOption(
      find(null, name),
      (ms) => ms === 0 || ms >= shortest,
      `is not 0 or a whole number of milliseconds, ${shortest} or more`,
    );
  const hangLimitMs = limitOption("HEDDLE_HANG_LIMIT", SHORTEST_HANG_LIMIT_MS);
  const startLimitMs = limitOption("HEDDLE_START_LIMIT", SHORTEST_START_LIMIT_MS);
  const log = textOption(
    find("log", "HEDDLE_LOG_FORMAT"),
    isLogFormat,
    "is not json or text; HEDDLE_LOG sets the level",
  );
  const secret = find(null, "HEDDLE_WEBHOOK_SECRET");
  const port = numberOption(
    find("port", "HEDDLE_PORT", "PORT"),
    isPort,
    "is not a whole number from 0 to 65535",
  );
  return {
    host: host?.value ?? "127.0.0.1",
    data: find("data", "HEDDLE_DATA")?.value ?? data,
    level: textOption(find(null, "HEDDLE_LOG"), isLogLevel, NO_LEVEL) ?? "info",
    ...(log === undefined ? {} : { log }),
    ...(port === undefined ? {} : { port }),
    ...(flags.insecure === true || env["HEDDLE_INSECURE"] === "1" ? { insecure: true } : {}),
    ...(requestLog === undefined ? {} : { requestLog }),
    ...(hosts === undefined ? {} : { hosts }),
    ...(origins === undefined ? {} : { origins }),
    ...(mount === undefined ? {} : { mount }),
    ...(transport === undefined ? {} : { transport }),
    ...(maxBody === undefined ? {} : { maxBody }),
    ...(workers === undefined ? {} : { workers }),
    ...(shards === undefined ? {} : { shards }),
    ...(cluster === undefined ? {} : { cluster }),
    ...(hangLimitMs === undefined ? {} : { hangLimitMs }),
    ...(startLimitMs === undefined ? {} : { startLimitMs }),
    ...(sync === undefined ? {} : { sync }),
    ...(secret === undefined ? {} : { webhooks: { secret: secret.value } }),
  };
}

function clusterOf(
  find: (flag: keyof OptionFlags | null, ...names: readonly string[]) => GivenOption | undefined,
  env: Variables,
): ClusterSettings | undefined {
  const url = find("cluster", "HEDDLE_CLUSTER");
  const node = find("node", "HEDDLE_NODE");
  if (url === undefined) {
    if (node !== undefined)
      refuseOption(node, "names a node of a cluster; name the cluster too, with --cluster");
    return undefined;
  }
  if (!/^postgres(ql)?:\/\//.test(url.value))
    throw new ServiceError(
      "config.invalid",
      `${url.name} names no PostgreSQL database: postgres://user:password@host/database`,
    );
  const host = find(null, "HEDDLE_CLUSTER_HOST");
  const lease = find(null, "HEDDLE_CLUSTER_LEASE");
  const leaseMs = numberOption(
    lease,
    (ms) => ms >= SHORTEST_LEASE_MS,
    `is not a whole number of milliseconds, ${SHORTEST_LEASE_MS} or more`,
  );
  const snapshotBytes = numberOption(
    find(null, "HEDDLE_CLUSTER_SNAPSHOT"),
    (bytes) => bytes >= LEAST_SNAPSHOT_BYTES,
    `is not a whole number of bytes, ${LEAST_SNAPSHOT_BYTES} or more`,
  );
  return {
    url: url.value,
    secret: find(null, "HEDDLE_CLUSTER_SECRET")?.value ?? "",
    ...postgresSchemaOf(env),
    ...(node === undefined ? {} : { node: node.value }),
    ...(host === undefined ? {} : { host: host.value }),
    ...(leaseMs === undefined ? {} : { leaseMs }),
    ...(snapshotBytes === undefined ? {} : { snapshotBytes }),
  };
}

/** The PostgreSQL schema of the cluster's tables, from `HEDDLE_CLUSTER_SCHEMA`. */
export const postgresSchemaOf = ({
  HEDDLE_CLUSTER_SCHEMA: schema = "",
}: Variables): Pick<ClusterDatabaseLocation, "schema"> => (schema === "" ? {} : { schema });

const SHORTEST_LEASE_MS = 500;
const LEAST_SNAPSHOT_BYTES = 64 * 1024;

const NO_LEVEL = "is not debug, info, warn or error";

const isTransport = (text: string): text is "uws" | "node" => text === "uws" || text === "node";

const isLogFormat = (text: string): text is LogFormat => text === "json" || text === "text";

const isShardCount = (value: number): boolean => value >= 2 && value <= 64;
