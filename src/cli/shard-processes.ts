import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { App, ShardPlace } from "../app.ts";
import { ServiceError } from "../model/errors.ts";
import { systemClock } from "../platform/clock.ts";
import { systemScheduler } from "../platform/scheduler.ts";
import type { Logger } from "../ports/logger.ts";

/** The environment variable that tells a process which shard it serves. It is removed before any code of the project runs. */
const TASK_VARIABLE = "HEDDLE_SHARD_PROCESS";

/** Milliseconds before a process that has ended is started again. Doubled each time that it ends early. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;
/** A process that ends within this many milliseconds of its start has ended early. */
const SETTLED_MS = 10_000;

/** What the parent process tells the process of a shard. */
export interface ShardTask extends ShardPlace {
  readonly port: number;
  readonly tokenSecret: string;
}

/** What the process of a shard tells its parent: where it serves, or why it failed to start. */
type Report = Pick<App, "address" | "url" | "transport"> | { readonly failure: string };

/** Takes the task of this process out of the environment. Undefined if this process was not started for a shard, and at later calls. */
export function takeShardTask(env: NodeJS.ProcessEnv): ShardTask | undefined {
  const text = env[TASK_VARIABLE];
  delete env[TASK_VARIABLE];
  return text === undefined ? undefined : (JSON.parse(text) as ShardTask);
}

/** Reports to the parent; afterwards calls `then`. */
export function reportToParent(report: Report, then?: () => void): void {
  process.send?.(report, undefined, undefined, () => then?.());
}

/** Calls `stop` when the parent asks for it or has ended. Signals are ignored, because the parent handles them. */
export function onStopOfParent(stop: () => void): void {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
  process.on("message", (message) => message === "stop" && stop());
  process.on("disconnect", stop);
}

/** Starts and restarts the processes of a server, one for each shard. */
export class ShardProcesses {
  readonly #task: Omit<ShardTask, "number" | "sockets">;
  readonly #logger: Logger;
  readonly #sockets = mkdtempSync(join(tmpdir(), "heddle-"));
  readonly #children = new Map<number, ChildProcess>();
  #isStopping = false;

  constructor(task: Omit<ShardTask, "number" | "sockets">, logger: Logger) {
    this.#task = task;
    this.#logger = logger;
    process.once("exit", () => rmSync(this.#sockets, { recursive: true, force: true }));
  }

  /** Starts all processes. @throws ServiceError if one fails to start; then the others are stopped */
  async start(): Promise<Pick<App, "address" | "url" | "transport">> {
    try {
      const numbers = Array.from({ length: this.#task.count }, (_, number) => number);
      const started = await Promise.all(numbers.map((number) => this.#startKept(number, FIRST_PAUSE_MS)));
      return started[0] as (typeof started)[number];
    } catch (cause) {
      this.#isStopping = true;
      for (const child of this.#children.values()) child.kill("SIGKILL");
      throw cause;
    }
  }

  /** Starts the process of a shard and waits until it serves. From then on, starts it again whenever it ends. */
  async #startKept(number: number, pause: number): Promise<Exclude<Report, { failure: string }>> {
    const started = await this.#start(number);
    this.#keep(number, pause);
    return started;
  }

  /** Starts the process of a shard, and waits until it serves. */
  #start(number: number): Promise<Exclude<Report, { failure: string }>> {
    const task: ShardTask = { ...this.#task, number, sockets: this.#sockets };
    const child = fork(process.argv[1] as string, process.argv.slice(2), {
      env: { ...process.env, [TASK_VARIABLE]: JSON.stringify(task) },
    });
    this.#children.set(number, child);
    return new Promise((resolve, reject) => {
      child.once("message", (report: Report) => {
        if (!("failure" in report)) return resolve(report);
        reject(new ServiceError("config.invalid", report.failure));
      });
      child.once("exit", (code, signal) =>
        reject(new ServiceError("config.invalid", `the process of shard ${number} ended: ${signal ?? code}`)),
      );
      child.once("error", reject);
    });
  }

  /** Starts the process of a shard again whenever it ends. */
  #keep(number: number, pause: number): void {
    const since = systemClock.mono();
    this.#children.get(number)?.once("exit", (code, signal) => {
      if (this.#isStopping) return;
      const isEarly = systemClock.mono() - since < SETTLED_MS;
      const ms = isEarly ? pause : FIRST_PAUSE_MS;
      this.#logger.error("the process of a shard ended; it is started again", {
        shard: number,
        code,
        signal,
      });
      this.#restart(number, ms);
    });
  }

  #restart(number: number, pause: number): void {
    const next = Math.min(2 * pause, LONGEST_PAUSE_MS);
    systemScheduler.after(pause, () => {
      if (this.#isStopping) return;
      this.#startKept(number, next).catch((cause: unknown) => {
        if (this.#isStopping) return;
        this.#logger.error("the process of a shard could not be started", { shard: number, cause });
        this.#restart(number, next);
      });
    });
  }

  /** Asks all processes to stop, and waits until they have ended. */
  async close(): Promise<void> {
    this.#isStopping = true;
    const ended = [...this.#children.values()].map(
      (child) =>
        new Promise<void>((resolve) => {
          if (child.exitCode !== null || child.signalCode !== null) return resolve();
          child.once("exit", () => resolve());
          child.send("stop", () => undefined);
        }),
    );
    await Promise.all(ended);
  }
}
