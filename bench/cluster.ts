import { tmpdir } from "node:os";
import { join } from "node:path";
import { preferredOwner } from "../src/cluster/shard-placement.ts";
import { type PostgresServer, startPostgres } from "../test/postgres/postgres-server.ts";
import { SERVED } from "./build.ts";
import { filesystemOf } from "./machine.ts";
import { firstAnswer, freePort } from "./ports.ts";
import { Processes } from "./processes.ts";

const SECRET = "the secret of the cluster that is measured";

/** File systems in memory. PostgreSQL's commits would cost nothing there, so no cluster is measured on them. */
const IN_MEMORY: ReadonlySet<string> = new Set(["tmpfs", "ramfs"]);

interface CommandLineOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** A directory for CPU profiles. Each process writes one when it stops. */
  readonly profile?: string | undefined;
}

/**
 * Starts Heddle's command line, and waits until `/ok` responds with 200. The CPU time of the result is that of all its
 * processes, shards included.
 */
export async function startCommandLine(
  built: string,
  args: readonly string[],
  { env = {}, profile }: CommandLineOptions = {},
): Promise<Processes> {
  const port = await freePort();
  const server = new Processes(port);
  const cli = join(built, SERVED, "cli.js");
  const config = join(built, "one.json");
  server.start({
    program: process.execPath,
    // A process that is forked has these options of Node too.
    args: [
      ...(profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profile}`]),
      cli,
      "start",
      "--config",
      config,
      "--port",
      String(port),
      ...args,
    ],
    cwd: built,
    // `npm start` sets this flag too. As an environment variable, it also reaches the processes of the shards.
    env: { NODE_ENV: "production", NODE_OPTIONS: "--max-semi-space-size=64", ...env },
  });
  try {
    await firstAnswer(port, "/ok", () => server.ended());
  } catch (error) {
    await server.kill();
    throw error;
  }
  return server;
}

interface ClusterOptions {
  readonly built: string;
  /** Makes an empty data directory and returns its path. */
  readonly newData: () => string;
  readonly shards: number;
  /** The lease of a node in milliseconds (`HEDDLE_CLUSTER_LEASE`); default: Heddle's own. */
  readonly leaseMs?: number;
  /** A directory for CPU profiles. Each process writes one when it stops. */
  readonly profile?: string | undefined;
}

/** Nodes of one cluster on this machine, with a PostgreSQL server of their own that syncs each commit to the disk. */
export class BenchCluster {
  readonly #postgres: PostgresServer;
  readonly #options: ClusterOptions;
  readonly #nodes: Processes[] = [];

  private constructor(postgres: PostgresServer, options: ClusterOptions) {
    this.#postgres = postgres;
    this.#options = options;
  }

  static async use<T>(options: ClusterOptions, measure: (cluster: BenchCluster) => Promise<T>): Promise<T> {
    if (IN_MEMORY.has(filesystemOf(tmpdir())))
      throw new Error(
        `${tmpdir()} is in memory: let TMPDIR name a directory on a disk, for PostgreSQL's data`,
      );
    const cluster = new BenchCluster(await startPostgres({ fsync: "on" }), options);
    try {
      return await measure(cluster);
    } finally {
      for (const node of cluster.#nodes) await (options.profile === undefined ? node.kill() : node.stop());
      await cluster.#postgres.remove();
    }
  }

  async start(name: string): Promise<Processes> {
    const { built, newData, shards, leaseMs, profile } = this.#options;
    const { url } = this.#postgres;
    const node = await startCommandLine(
      built,
      ["--data", newData(), "--cluster", url, "--node", name, "--shards", String(shards)],
      {
        env: {
          HEDDLE_CLUSTER_SECRET: SECRET,
          ...(leaseMs !== undefined && { HEDDLE_CLUSTER_LEASE: String(leaseMs) }),
        },
        profile,
      },
    );
    this.#nodes.push(node);
    return node;
  }
}

/** Names of two nodes, chosen so that `owner` owns shard 0 and keeps it when `other` joins. */
export function ownerAndOther(): readonly [owner: string, other: string] {
  const members = ["a", "b"].map((name) => ({ id: `${name}/0`, address: "", isDraining: false }));
  return preferredOwner(0, members)?.id === "a/0" ? ["a", "b"] : ["b", "a"];
}
