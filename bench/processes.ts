import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { cpuOf, ioOf, type IoCount } from "./proc.ts";
import type { Server } from "./server.ts";
import type { ServerStats } from "./servers/report.ts";

interface Command {
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  /** The signal that stops the process in an orderly way; default: SIGTERM. */
  readonly stop?: NodeJS.Signals;
}

/** The number of characters at the end of the processes' output that are kept for an error message. */
const OUTPUT_CHARACTERS_PER_PASS = 4_000;

/**
 * The process group of a process, from `/proc/PID/stat`. The fields are counted after the last `)`, because the
 * process name before it may contain spaces and parentheses.
 */
function groupOf(pid: string): number {
  const text = readFileSync(`/proc/${pid}/stat`, "latin1");
  return Number(text.slice(text.lastIndexOf(")") + 2).split(" ")[2]);
}

/**
 * A server that may consist of several processes. Each command is started as the leader of its own process group,
 * which also contains the processes that it starts. All groups are measured and ended together.
 */
export class Processes implements Server {
  readonly port: number;
  readonly #leaders: { readonly child: ChildProcess; readonly stop: NodeJS.Signals }[] = [];
  #said = "";

  constructor(port: number) {
    this.port = port;
    // The process groups would outlive a bench that is interrupted.
    process.once("exit", this.#killAll);
  }

  start({ program, args, cwd, env = {}, stop = "SIGTERM" }: Command): void {
    const child = spawn(program, args, {
      cwd,
      env: { ...process.env, ...env },
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const keep = (text: string) => void (this.#said = (this.#said + text).slice(-OUTPUT_CHARACTERS_PER_PASS));
    child.stdout.setEncoding("utf8").on("data", keep);
    child.stderr.setEncoding("utf8").on("data", keep);
    child.on("error", (error) => keep(error.message));
    this.#leaders.push({ child, stop });
  }

  /** Why waiting any longer is pointless: a command has exited or could not be started. Otherwise undefined. */
  ended(): string | undefined {
    const gone = this.#leaders.some(
      ({ child }) => child.exitCode !== null || child.signalCode !== null || child.pid === undefined,
    );
    return gone ? `ended: ${this.#said.trim()}` : undefined;
  }

  #pids(): number[] {
    const leaders = new Set(this.#leaders.map(({ child }) => child.pid));
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .flatMap((name) => {
        try {
          return leaders.has(groupOf(name)) ? [Number(name)] : [];
        } catch {
          // The process has ended after it was listed.
          return [];
        }
      });
  }

  cpu(): number {
    return this.#pids().reduce((sum, pid) => sum + cpuOf(pid), 0);
  }

  io(): IoCount {
    const all = this.#pids().map(ioOf);
    return {
      written: all.reduce((sum, { written }) => sum + written, 0),
      toDisk: all.reduce((sum, { toDisk }) => sum + toDisk, 0),
    };
  }

  stats(): Promise<ServerStats> {
    const rss = this.#pids().reduce((sum, pid) => sum + rssOf(pid), 0);
    return Promise.resolve({ cpu: this.cpu(), rss, heap: Number.NaN, timers: Number.NaN });
  }

  collect(): Promise<ServerStats> {
    return this.stats();
  }

  async stop(): Promise<void> {
    // In reverse order, because a command may depend on those started before it.
    for (const { child, stop } of this.#leaders.toReversed()) await end(child, stop);
    await this.kill();
  }

  readonly #killAll = (): void => {
    for (const { child } of this.#leaders) {
      try {
        process.kill(-(child.pid ?? Number.NaN), "SIGKILL");
      } catch {
        // The process group has no processes any more.
      }
    }
  };

  async kill(): Promise<void> {
    process.off("exit", this.#killAll);
    this.#killAll();
    await Promise.all(this.#leaders.map(({ child }) => gone(child)));
  }
}

function rssOf(pid: number): number {
  const kilobytes = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1] ?? 0;
  return Number(kilobytes) * 1024;
}

async function gone(child: ChildProcess): Promise<void> {
  if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
    await once(child, "exit");
  }
}

/**
 * Sends a process a signal, and kills it if it has not exited after 30 seconds. Nodes of a cluster need time to hand
 * over their shards.
 */
async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  const timer = setTimeout(() => child.kill("SIGKILL"), 30_000);
  await gone(child);
  clearTimeout(timer);
}
