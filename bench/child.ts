import { fork, type ChildProcess } from "node:child_process";
import { rmSync } from "node:fs";
import type { Job, JobResult } from "./load/job.ts";
import { cpuOf, ioOf, type IoCount } from "./proc.ts";
import type { Server } from "./server.ts";
import type { ServerStats } from "./servers/report.ts";

/** Waits for one IPC message from a child process. Rejects if the child exits first, or after `ms` milliseconds. */
function receiveMessage<T>(child: ChildProcess, what: string, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => done(new Error(`${what}: no answer within ${ms} ms`)), ms);
    const onMessage = (message: T) => done(undefined, message);
    const onExit = (code: number | null, signal: string | null) =>
      done(new Error(`${what} ended (${signal ?? code})`));
    const done = (error: Error | undefined, message?: T) => {
      clearTimeout(timer);
      child.off("message", onMessage);
      child.off("exit", onExit);
      if (error === undefined) resolve(message as T);
      else reject(error);
    };
    child.on("message", onMessage);
    child.on("exit", onExit);
  });
}

/**
 * Removes the directory when this process exits, also after SIGINT or SIGTERM. The servers that write to the directory
 * are killed before: see {@link killOnExit}.
 */
export function removeOnExit(directory: string): void {
  process.on("exit", () => rmSync(directory, { recursive: true, force: true, maxRetries: 20 }));
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
}

/** Kills the child when this process exits, before other exit listeners run. */
function killOnExit(child: ChildProcess): void {
  const kill = () => void child.kill("SIGKILL");
  process.prependListener("exit", kill);
  child.once("exit", () => process.off("exit", kill));
}

/** The child process that sends the requests and measures the latency of the responses. */
export class LoadProcess {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start(built: string): Promise<LoadProcess> {
    const child = fork(`${built}/bench/load.js`, [], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    await receiveMessage(child, "load process", 10_000);
    return new LoadProcess(child);
  }

  async perform(job: Job): Promise<JobResult> {
    const answer = receiveMessage<{ result?: JobResult; error?: string }>(
      this.#child,
      "load process",
      300_000,
    );
    this.#child.send(job);
    const { result, error } = await answer;
    if (result === undefined) throw new Error(`load: ${error ?? "no result"}`);
    return result;
  }

  stop(): void {
    this.#child.disconnect();
  }
}

/**
 * A server under measurement, Heddle or a control, in a process of its own. It reports its {@link ServerStats} over
 * IPC.
 */
export class ServerProcess implements Server {
  readonly #child: ChildProcess;
  readonly port: number;
  readonly pid: number;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.port = port;
    this.pid = child.pid ?? 0;
  }

  /**
   * `profile`: a directory for a CPU profile of the whole process, written when the process stops. `node`: the path of
   * the Node executable that runs the server; default: the one that runs the bench.
   */
  static async start(
    script: string,
    args: readonly string[],
    {
      profile,
      node = process.execPath,
    }: { readonly profile?: string | undefined; readonly node?: string } = {},
  ): Promise<ServerProcess> {
    const child = fork(script, args, {
      execPath: node,
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      execArgv: [
        "--expose-gc",
        // `npm start` sets this flag too; the README recommends it for a busy server.
        "--max-semi-space-size=64",
        ...(profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profile}`]),
      ],
      env: { ...process.env, NODE_ENV: "production" },
    });
    killOnExit(child);
    try {
      const { port } = await receiveMessage<{ port: number }>(child, script, 20_000);
      return new ServerProcess(child, port);
    } catch (error) {
      // The child may only be slow to start, but if it kept running, the bench would never end.
      child.kill("SIGKILL");
      throw error;
    }
  }

  cpu(): number {
    return cpuOf(this.pid);
  }

  io(): IoCount {
    return ioOf(this.pid);
  }

  stats(): Promise<ServerStats> {
    return this.#ask("stats");
  }

  /** The same as {@link ServerProcess.stats}, after a garbage collection. */
  collect(): Promise<ServerStats> {
    return this.#ask("collect");
  }

  /**
   * Sends a control server a command that only this kind of control understands; resolves when the server has executed
   * it.
   */
  async perform(asked: unknown): Promise<void> {
    const answer = receiveMessage(this.#child, "server", 300_000);
    this.#child.send({ asked });
    await answer;
  }

  async #ask(ask: "stats" | "collect"): Promise<ServerStats> {
    const answer = receiveMessage<{ stats: ServerStats }>(this.#child, "server", 20_000);
    this.#child.send({ ask });
    return (await answer).stats;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#child.send({ ask: "stop" });
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), 15_000);
    await gone;
    clearTimeout(timer);
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#child.kill("SIGKILL");
    await gone;
  }
}
