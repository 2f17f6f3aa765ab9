import { setTimeout as sleep } from "node:timers/promises";
import { BenchCluster, ownerAndOther, startCommandLine } from "../cluster.ts";
import type { Server } from "../server.ts";
import { body, measureWaits, waitPath, warmUp } from "./heddle.ts";
import { makeThreads, perform, withServer, type Request } from "./measure.ts";
import type { Bench, Figures, Goal, Row } from "./row.ts";

/** Rows for Heddle in several processes: shards on one machine, and nodes of a cluster with PostgreSQL. */

const RUN = body("one", { value: 1 });

/**
 * The lease in milliseconds (`HEDDLE_CLUSTER_LEASE`) in the row that measures the failure of a node with a short
 * lease.
 */
const SHORT_LEASE_MS = 1_500;

/** A cluster of one node with one shard, which this node owns. No request has to be forwarded. */
const owned = (clients: number, total: number, goals: readonly Goal[], target: string): Row => ({
  name: `cluster-wait-${clients}`,
  long: true,
  what: `wait-${clients} on a node of a cluster with one shard, which it owns`,
  target,
  goals,
  against: [
    { row: `wait-${clients}`, figure: "p50_ms" },
    { row: `wait-${clients}`, figure: "per_s" },
    { row: `wait-${clients}`, figure: "cpu_us" },
  ],
  run: (bench) =>
    BenchCluster.use({ ...bench, shards: 1 }, async (cluster) =>
      measureWaits(bench, await cluster.start("a"), { clients, total }),
    ),
});

/** Starts two nodes of a cluster with one shard. `owner` owns this shard. */
async function startPair(cluster: BenchCluster): Promise<readonly [owner: Server, other: Server]> {
  const [owner, other] = ownerAndOther();
  const first = await cluster.start(owner);
  return [first, await cluster.start(other)];
}

/** The number of clients whose requests use the CPU under load, where the CPU of a forwarded request is measured. */
const LOAD_CLIENTS = 64;

const forwarded: Row = {
  name: "cluster-forwarded",
  long: true,
  what:
    "runs/wait of a one-node graph at the node that owns the shard, and at another one: p50 with one client, CPU of both nodes together " +
    `with ${LOAD_CLIENTS} clients (and, without a target, with one, when an idle machine makes everything dearer)`,
  target: "when forwarded, p50 at most 0.5 ms more with one client, CPU at most 120 us more with 64",
  goals: [
    { figure: "added_p50_ms", most: 0.5 },
    { figure: "added_cpu_us", most: 120 },
  ],
  run: (bench) =>
    BenchCluster.use({ ...bench, shards: 1 }, async (cluster) => {
      const nodes = await startPair(cluster);
      const [owner, other] = nodes;
      const cpu = () => nodes.reduce((sum, node) => sum + node.cpu(), 0);
      const once = async (server: Server, connections: number, runs: number) => {
        const total = Math.max(connections, Math.round(runs * bench.scale));
        const paths = (await makeThreads(bench, owner, total)).map(waitPath);
        const request: Request = { connections, method: "POST", paths, total, body: RUN, answer: "text" };
        const before = cpu();
        const { latency } = await perform(bench, server, request);
        return { p50: latency.p50, cpu: ((cpu() - before) / total) * 1e6 };
      };
      for (const node of nodes) await warmUp(bench, node);
      const load = (server: Server) => once(server, LOAD_CLIENTS, 12_000);
      const [local, remote] = [await load(owner), await load(other)];
      const alone = (server: Server) => once(server, 1, 2_000);
      const [localAlone, remoteAlone] = [await alone(owner), await alone(other)];
      return {
        p50_ms: remoteAlone.p50,
        cpu_us: remote.cpu,
        added_p50_ms: remoteAlone.p50 - localAlone.p50,
        added_cpu_us: remote.cpu - local.cpu,
        added_cpu_alone_us: remoteAlone.cpu - localAlone.cpu,
      };
    }),
};

/** The number of threads on the node that is killed, each with one run that has ended. */
const THREADS = 200;

const failover = (name: string, leaseMs: number | undefined, most: number): Row => ({
  name,
  long: true,
  what:
    `kill -9 of the node that owns the shard, lease of ${leaseMs ?? "3,000 (default)"} ms: until another node acknowledges a run on ` +
    "one of its threads",
  target: `under ${most} s`,
  goals: [{ figure: "seconds", most }],
  run: (bench) =>
    BenchCluster.use({ ...bench, shards: 1, ...(leaseMs !== undefined && { leaseMs }) }, async (cluster) => {
      const [owner, other] = await startPair(cluster);
      const threads = await makeThreads(bench, owner, THREADS);
      const paths = threads.map(waitPath);
      const total = THREADS;
      await perform(bench, owner, {
        connections: 16,
        method: "POST",
        paths,
        total,
        body: RUN,
        answer: "text",
      });
      const began = performance.now();
      await owner.kill();
      const url = `http://127.0.0.1:${other.port}/threads/${threads[0]}/runs`;
      const headers = { "content-type": "application/json" };
      // While the lease of the killed node is valid, the other node holds each request for some time and then refuses
      // it.
      while (!(await fetch(url, { method: "POST", headers, body: RUN })).ok) await sleep(10);
      return { seconds: (performance.now() - began) / 1000 };
    }),
});

/**
 * Seconds of load. The node that owns the shard is told to stop {@link BEFORE_STOP_SECONDS} seconds after the load
 * began.
 */
const LOAD_SECONDS = 20;
const BEFORE_STOP_SECONDS = 5;

const stop: Row = {
  name: "cluster-stop",
  long: true,
  what: "runs/wait of a one-node graph, 16 clients at another node; meanwhile the node that owns the shard is stopped in good order",
  target: "no failed request, the longest pause under 500 ms",
  goals: [
    { figure: "failed", most: 0 },
    { figure: "pause_ms", most: 500 },
  ],
  run: (bench) =>
    BenchCluster.use({ ...bench, shards: 1 }, async (cluster): Promise<Figures> => {
      const [owner, other] = await startPair(cluster);
      await warmUp(bench, other);
      const ids = await makeThreads(bench, other, 1_000);
      const load = bench.load.perform({
        host: "127.0.0.1",
        port: other.port,
        connections: 16,
        method: "POST",
        paths: ids.map(waitPath),
        total: 1_000_000,
        sticky: true,
        seconds: LOAD_SECONDS,
        body: RUN,
        answer: "text",
      });
      await sleep(BEFORE_STOP_SECONDS * 1_000);
      const [result] = await Promise.all([load, owner.stop()]);
      return {
        failed: result.failures,
        pause_ms: result.latency.max,
        p50_ms: result.latency.p50,
        p99_ms: result.latency.p99,
      };
    }),
};

/**
 * Runs on `count` processes of the command line. `threads`: `own` if each client runs the threads that it has made over its own connection,
 * which needs no forwarding; `new` if it runs any threads, most of which other processes have.
 */
const shards = (count: number, threads: "own" | "new", more: Partial<Row>): Row => ({
  name: `shards-${count}${threads === "own" ? "" : "-forwarded"}`,
  long: true,
  what:
    `wait-256 on ${count === 1 ? "one process" : `${count} processes`} of the command line` +
    (threads === "own"
      ? "; each client makes its threads over its own connection"
      : "; each client runs threads that were made over any connection"),
  run: (bench: Bench) => {
    const args = ["--data", bench.newData(), ...(count > 1 ? ["--shards", String(count)] : [])];
    return withServer(startCommandLine(bench.built, args, { profile: bench.profile }), (server) =>
      measureWaits(bench, server, { clients: 256, total: 12_000, threads, processes: count }),
    );
  },
  ...more,
});

export const clusterRows: readonly Row[] = [
  owned(1, 2_000, [{ figure: "p50_ms", to: "wait-1", most: 1.5 }], "p50 at most 1.5 times that of wait-1"),
  owned(
    256,
    12_000,
    [
      { figure: "per_s", to: "wait-256", least: 0.8 },
      { figure: "cpu_us", to: "wait-256", most: 1.25 },
    ],
    "at least 0.8 times the rate of wait-256, at most 1.25 times its CPU",
  ),
  forwarded,
  failover("cluster-failover-1500", SHORT_LEASE_MS, 2),
  failover("cluster-failover", undefined, 4.5),
  stop,
  shards(1, "own", {}),
  shards(4, "own", {
    target: "at most 1.15 times the CPU of one process",
    goals: [{ figure: "cpu_us", to: "shards-1", most: 1.15 }],
    against: [
      { row: "shards-1", figure: "cpu_us" },
      { row: "shards-1", figure: "per_s" },
    ],
  }),
  shards(4, "new", {
    against: [
      { row: "shards-4", figure: "cpu_us" },
      { row: "shards-4", figure: "per_s" },
    ],
  }),
];
