import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../../bench/ports.ts";
import { shardDirectory } from "../../../src/cli/shard-directories.ts";
import { systemScheduler } from "../../../src/platform/scheduler.ts";
import { openExistingClusterDatabase } from "../../../src/postgres/cluster-database.ts";
import { LevelDbKeyValueStore } from "../../../src/storage/leveldb-key-value-store.ts";
import { compile, type Program } from "../../fixtures/compile.ts";
import { type PostgresServer, startPostgres, urlOf } from "../../postgres/postgres-server.ts";
import { Client } from "../client.ts";
import { Effects } from "../effects.ts";
import { Ledger, type Violation } from "../ledger.ts";
import { Load } from "../load.ts";
import { servedModes } from "../modes.ts";
import { SeededRandom } from "../random.ts";
import { verify } from "../verify.ts";
import { verifyStateless, verifyStatelessWebhooks } from "../verify-stateless.ts";
import { WebhookReceiver } from "../webhook-receiver.ts";
import { causeFault, type FaultName } from "./faults.ts";
import { checkLogs, type LocalCopy, type LogCounts } from "./log-check.ts";
import { Network } from "./network.ts";
import { nodeHost } from "./node-hosts.ts";
import { NodeProcess, readOwners } from "./node-process.ts";
import { PatientClient } from "./patient-client.ts";

export interface ClusterChaosOptions {
  readonly faults: number;
  readonly seed: number;
  /** Ends after the first fault that comes later than this. */
  readonly seconds?: number;
  readonly threads?: number;
  readonly clients?: number;
  /** Milliseconds: the longest time under load before a fault. */
  readonly longest?: number;
  /** False: the end of the time for which threads of runs without a thread are kept is not waited for. */
  readonly linger?: boolean;
  /** The faults that are caused, one after the other, and then again. Absent: the seed decides. */
  readonly only?: readonly FaultName[];
  readonly say?: (line: string) => void;
}

export interface ClusterOutcome extends LogCounts {
  readonly seed: number;
  readonly faults: ReadonlyMap<string, number>;
  readonly operations: number;
  readonly runs: number;
  readonly stateless: number;
  readonly events: number;
  readonly machineEvents: number;
  /** Actions that a broken connection cut short. */
  readonly lost: number;
  /** Connections that were cut during verifications. */
  readonly cuts: number;
  /** Milliseconds from the end of each fault until all shards were served again. */
  readonly recoveries: readonly number[];
  readonly violations: readonly Violation[];
  /** The files of the nodes; they are kept if a violation was found. */
  readonly directory: string | undefined;
}

const NODES = 3;
const SHARDS = 4;
/** Milliseconds: the lease of a node. */
const LEASE = 1_500;
/** Milliseconds for which a node keeps temporary threads for readers. */
const LINGER = 60_000;
/** Milliseconds that a process takes at most from the log line about its departure to the end of its connections, or back. */
const DEPARTURE = 12_000;
/** Milliseconds: the limit until all nodes serve all shards. */
const HEALTHY = 120_000;
const SECRET = "the secret of the cluster under faults, long enough";
const CLI = join(import.meta.dirname, "..", "..", "..", "dist", "src", "cli.js");

/**
 * Starts three nodes of a cluster on a PostgreSQL of its own, breaks one thing after the other under load, and compares the answers
 * afterwards with the acknowledgements, and the log with what the nodes' processes have done. The package has to be built.
 */
export async function runClusterChaos(options: ClusterChaosOptions): Promise<ClusterOutcome> {
  const directory = mkdtempSync(join(tmpdir(), "heddle-cluster-chaos-"));
  const [graphs, preload] = await Promise.all([
    compile(join(import.meta.dirname, "..", "graphs.ts"), { isGraphFile: true }),
    compile(join(import.meta.dirname, "node-preload.ts")),
  ]);
  const postgres = await startPostgres();
  const driver = new ClusterDriver(options, directory, postgres);
  try {
    await driver.run(graphs, preload);
  } finally {
    await driver.end();
    await postgres.remove();
    graphs.remove();
    preload.remove();
  }
  const { violations } = driver;
  if (violations.length === 0) rmSync(directory, { recursive: true, force: true });
  return {
    seed: options.seed,
    ...driver.figures(),
    violations,
    directory: violations.length === 0 ? undefined : directory,
  };
}

class ClusterDriver {
  readonly violations: Violation[] = [];
  readonly #ledger = new Ledger({ isOfCluster: true });
  readonly #options: ClusterChaosOptions;
  readonly #dice: SeededRandom;
  readonly #directory: string;
  readonly #owners: string;
  readonly #effects: Effects;
  readonly #hooks: WebhookReceiver;
  readonly #postgres: PostgresServer;
  readonly #network = new Network();
  readonly #nodes: NodeProcess[] = [];
  readonly #seen = new Set<string>();
  readonly #faults = new Map<string, number>();
  readonly #recoveries: number[] = [];
  #counts: LogCounts = { entries: 0, takeovers: 0, begunAgain: 0, copies: 0 };
  #operations = 0;
  #lost = 0;
  #cuts = 0;

  constructor(options: ClusterChaosOptions, directory: string, postgres: PostgresServer) {
    this.#options = options;
    this.#directory = directory;
    this.#postgres = postgres;
    this.#dice = new SeededRandom(options.seed);
    this.#hooks = new WebhookReceiver(this.#dice);
    this.#owners = join(directory, "owners.jsonl");
    writeFileSync(this.#owners, "");
    this.#effects = new Effects(join(directory, "effects.jsonl"));
  }

  figures(): Omit<ClusterOutcome, "seed" | "violations" | "directory"> {
    const { runs, stateless, machines } = this.#ledger;
    const all = [...runs.values(), ...stateless.values()];
    const frames = all.flatMap(({ streams }) => streams.map((stream) => stream.frames.length));
    const sent = [...machines.values()].flatMap((machine) => machine.sent);
    return {
      ...this.#counts,
      faults: this.#faults,
      operations: this.#operations,
      runs: all.length,
      stateless: stateless.size,
      events: frames.reduce((sum, count) => sum + count, 0),
      machineEvents: sent.filter(({ acknowledged }) => acknowledged !== undefined).length,
      lost: this.#lost,
      cuts: this.#cuts,
      recoveries: this.#recoveries,
    };
  }

  async run(graphs: Program, preload: Program): Promise<void> {
    const { faults, seconds = Number.POSITIVE_INFINITY, say } = this.#options;
    await this.#startNodes(graphs, preload);
    const hook = await this.#hooks.open();
    if (!(await this.#isHealthy("after the start"))) return;
    const patient = new PatientClient(this.#somePort);
    const modes = await servedModes(patient);
    for (let i = 1; i <= faults && this.violations.length === 0; i++) {
      if (this.#ledger.now() > seconds * 1000) break;
      const fault = await this.#cycle(hook, modes, i - 1);
      if (this.violations.length === 0) await this.#verify(patient, false);
      say?.(
        `fault ${i}: ${fault}; served again ${this.#recoveries.at(-1)} ms after it: ${this.#ledger.runs.size} runs acknowledged and ` +
          `${this.#ledger.stateless.size} without a thread, ${this.violations.length} violations`,
      );
    }
    // Also after a violation: the answers now are part of the evidence.
    if (await this.#isHealthy("at the end")) await this.#verify(patient, true);
    patient.close();
    const { linger = true } = this.#options;
    if (linger) await sleep(LINGER + 5_000);
    for (const node of this.#nodes) {
      const end = await node.stop(60_000);
      if (end !== "0") this.#wrong(`the last stop of a node ended with ${end}`, node);
    }
    this.#effects.read();
    const database = await openExistingClusterDatabase(
      { url: this.#postgres.url },
      { scheduler: systemScheduler },
    );
    this.#counts = await checkLogs({
      log: database.log,
      shards: SHARDS,
      copiesOf: (shard) => this.#copiesOf(shard),
      effects: this.#effects.all,
      owners: readOwners(this.#owners),
      isLingerOver: linger,
      found: this.#found,
    });
    await database.close();
  }

  /** Opens the databases of a shard that the nodes, which have ended, have in their directories. */
  async #copiesOf(shard: number): Promise<LocalCopy[]> {
    const copies: LocalCopy[] = [];
    for (let node = 0; node < NODES; node++) {
      const directory = join(shardDirectory(join(this.#directory, `node-${node}`), shard), "level");
      if (!existsSync(directory)) continue;
      const store = new LevelDbKeyValueStore(directory, true);
      await store.open();
      copies.push({ node: `n${node}`, store });
    }
    return copies;
  }

  async end(): Promise<void> {
    for (const node of this.#nodes) if (node.ended === undefined) await node.kill();
    this.#hooks.close();
    this.#network.close();
  }

  async #startNodes(graphs: Program, preload: Program): Promise<void> {
    const config = join(this.#directory, "heddle.json");
    writeFileSync(
      config,
      JSON.stringify({
        graphs: { chaos: `${graphs.script}:chaos`, machine: `${graphs.script}:machine` },
        webhooks: { allow_internal: true },
      }),
    );
    const router = await this.#network.route();
    for (let node = 0; node < NODES; node++) {
      const [port, database] = [
        await freePort(),
        await this.#network.proxyDatabase(node, this.#postgres.port),
      ];
      const data = join(this.#directory, `node-${node}`);
      mkdirSync(data);
      const args =
        `${CLI} start --config ${config} --data ${data} --port ${port} --node n${node} --cluster ${urlOf(database)} --shards ${SHARDS}`.split(
          " ",
        );
      const env = {
        NODE_ENV: "production",
        NODE_OPTIONS: `--import=${preload.script}`,
        HEDDLE_CLUSTER_SECRET: SECRET,
        HEDDLE_CLUSTER_HOST: nodeHost(node),
        HEDDLE_CLUSTER_LEASE: String(LEASE),
        HEDDLE_CHAOS_EFFECTS: join(this.#directory, "effects.jsonl"),
        CHAOS_NODE: String(node),
        CHAOS_ROUTER: String(router),
        CHAOS_OWNERS: this.#owners,
      };
      const process = new NodeProcess({ node, port, args, env, owners: this.#owners });
      this.#nodes.push(process);
      process.start();
      // The first one makes the tables.
      if (node === 0) await this.#answers(process, performance.now() + HEALTHY);
    }
  }

  /** One cycle: load, a fault under load, recovery under load; then the load ends. */
  async #cycle(hook: string, modes: readonly string[], number: number): Promise<string> {
    const { threads = 50, clients = 12, longest = 1_500, only = [] } = this.#options;
    const [dice, ledger, report] = [this.#dice, this.#ledger, this.#found];
    const client = new Client(this.#somePort);
    const load = new Load({
      client,
      ledger,
      dice,
      threads,
      modes,
      graphs: ["chaos"],
      hook,
      report,
      mayBeRefused: true,
      onLost: () => this.#lost++,
    });
    load.start(clients);
    await sleep(dice.between(50, longest));
    const span = { from: ledger.now(), until: Number.POSITIVE_INFINITY };
    ledger.faults.push(span);
    const fault = await causeFault(
      {
        nodes: this.#nodes,
        network: this.#network,
        postgres: this.#postgres,
        leaseMs: LEASE,
        dice,
        wrong: this.#wrong,
      },
      only[number % only.length],
    );
    const name = fault.split(/ [(a]fter| \(/)[0] as string;
    this.#faults.set(name, (this.#faults.get(name) ?? 0) + 1);
    const began = performance.now();
    await this.#isHealthy(`after the fault: ${fault}`);
    this.#recoveries.push(Math.round(performance.now() - began));
    await sleep(dice.between(0, 500));
    await load.stop();
    span.until = ledger.now();
    ledger.settle();
    client.close();
    this.#operations += load.operations;
    return fault;
  }

  /** Waits until each node answers, and shows all shards as served. */
  async #isHealthy(when: string): Promise<boolean> {
    const until = performance.now() + HEALTHY;
    const healthy = await Promise.all(this.#nodes.map((node) => this.#answers(node, until, true)));
    const sick = this.#nodes.find((_, i) => healthy[i] !== true);
    for (const node of this.#nodes) {
      if (node.ended !== undefined && !node.isExpectedToEnd)
        this.#wrong(`${when}: a node ended by itself with ${node.ended}`, node);
    }
    if (sick !== undefined) this.#wrong(`${when}: not all shards are served within ${HEALTHY} ms`, sick);
    return sick === undefined;
  }

  async #answers(node: NodeProcess, until: number, withAll = false): Promise<boolean> {
    while (performance.now() < until && node.ended === undefined) {
      try {
        const signal = AbortSignal.timeout(10_000);
        const { status } = await fetch(`http://127.0.0.1:${node.port}/ok`, { signal });
        const info = await fetch(`http://127.0.0.1:${node.port}/info`, { signal });
        const { heddle } = (await info.json()) as { heddle?: { shards?: readonly { up: boolean }[] } };
        const up = (heddle?.shards ?? []).filter((shard) => shard.up).length;
        if (status === 200 && (!withAll || up === SHARDS)) return true;
      } catch {
        // Not listening, or waiting for a shard.
      }
      await sleep(20);
    }
    return false;
  }

  /**
   * While no fault is under way, the client's connections are cut only where a process of its node ends or gives up its shard, because a node
   * that was away gets its shards back.
   */
  async #checkCuts({ cuts }: PatientClient): Promise<void> {
    for (const cut of cuts.splice(0)) {
      const node = this.#nodes.find(({ port }) => port === cut.port) as NodeProcess;
      const isExplained = () => node.hasDeparted(cut.sent - DEPARTURE, cut.at + DEPARTURE);
      this.#cuts++;
      // The node's output may come later than the end of its connections.
      const until = cut.at + DEPARTURE;
      // oxlint-disable-next-line no-await-in-loop -- it waits for the output
      while (!isExplained() && performance.now() < until) await sleep(20);
      if (isExplained()) continue;
      const message = `the connection of ${cut.request} was cut, though no process of its node ended or gave up a shard`;
      this.#found({ invariant: "connection", message, evidence: { cut, output: node.output } });
    }
  }

  async #verify(client: PatientClient, all: boolean): Promise<void> {
    const [ledger, dice, hooks, effects, found] = [
      this.#ledger,
      this.#dice,
      this.#hooks,
      this.#effects,
      this.#found,
    ];
    const verification = { client, ledger, dice, hooks, effects, found, all };
    try {
      await Promise.all([verify(verification), verifyStateless(verification)]);
      if (all) await verifyStatelessWebhooks(verification);
      await this.#checkCuts(client);
    } catch (error) {
      const evidence = error instanceof Error ? error.stack : undefined;
      found({ invariant: "connection", message: `while looking: ${String(error)}`, evidence });
    }
  }

  readonly #somePort = (): number => this.#dice.pick(this.#nodes).port;

  readonly #wrong = (message: string, node: NodeProcess): void =>
    this.#found({ invariant: "node", message, evidence: node.output });

  readonly #found = (violation: Violation): void => {
    if (this.#seen.has(violation.message)) return;
    this.#seen.add(violation.message);
    this.violations.push(violation);
  };
}
