import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { OwnerLine } from "./node-preload.ts";

export interface NodeSetup {
  readonly node: number;
  readonly port: number;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The file in which the processes of all nodes record their shards. */
  readonly owners: string;
}

/** Reads which processes have had which shards, oldest first. */
export const readOwners = (file: string): OwnerLine[] =>
  readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as OwnerLine);

/**
 * What a node logs when the connections with one of its processes end: the process gives its shard up, or ends, or has lost its shard. Each
 * line of the log is one of these at most.
 */
const DEPARTURES =
  /"(?:the shard is handed over|stopping|stopped|the process of a shard ended|another node has taken [^"]*)[";:]/g;

/** A node of the cluster: a process group of the command line and its shards. It can be ended and started again. */
export class NodeProcess {
  readonly #setup: NodeSetup;
  #child: ChildProcess | undefined;
  #gone: Promise<string> = Promise.resolve("");
  #output = "";
  readonly #departures: number[] = [];
  /** The exit code or signal of the last process; undefined while it runs. */
  ended: string | undefined;
  /** Whether the driver has ended it, or is about to. */
  isExpectedToEnd = false;

  constructor(setup: NodeSetup) {
    this.#setup = setup;
    // Its processes have a group of their own, which would survive the driver.
    process.once("exit", () => {
      if (this.ended === undefined) this.signal("SIGKILL");
    });
  }

  get port(): number {
    return this.#setup.port;
  }

  get output(): string {
    return this.#output;
  }

  /** Whether a process of this node has ended, or has given its shard up, in this time: milliseconds of the monotonic clock. */
  hasDeparted(from: number, until: number): boolean {
    return this.#departures.some((at) => at >= from && at <= until);
  }

  start(): void {
    const { args, env } = this.#setup;
    this.isExpectedToEnd = false;
    this.ended = undefined;
    const child = spawn(process.execPath, args, {
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        this.#output = (this.#output + text).slice(-12_000);
        for (const _ of text.matchAll(DEPARTURES)) this.#departures.push(performance.now());
      });
    }
    this.#child = child;
    this.#gone = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        this.ended = String(signal ?? code);
        resolve(this.ended);
      });
    });
  }

  /** Sends a signal to all processes of the node, or only to the parent or to one shard's process. */
  signal(signal: NodeJS.Signals, to: "all" | "parent" | { readonly pid: number } = "all"): void {
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    try {
      process.kill(to === "all" ? -pid : to === "parent" ? pid : to.pid, signal);
    } catch (error) {
      // The process has ended by itself.
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }

  async kill(to: "all" | "parent" = "all"): Promise<void> {
    this.isExpectedToEnd = true;
    this.signal("SIGKILL", to);
    await this.#gone;
  }

  /** Asks the node to stop. Resolves with its exit code; undefined if it has not ended within `ms`. */
  async stop(ms: number): Promise<string | undefined> {
    this.isExpectedToEnd = true;
    this.signal("SIGTERM", "parent");
    return Promise.race([this.#gone, sleep(ms, undefined, { ref: false })]);
  }

  /** The living processes of this node that have shards. */
  shardProcesses(): OwnerLine[] {
    const parent = this.#child?.pid;
    return readOwners(this.#setup.owners).filter(
      ({ parent: of, shard, epoch, pid }) =>
        of === parent && shard !== undefined && epoch !== undefined && isLiving(pid),
    );
  }
}

function isLiving(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
