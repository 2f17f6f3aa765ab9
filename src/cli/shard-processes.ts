import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { App, ProcessNetwork, ProcessPlace, ShardApp } from "../app.ts";
import { ServiceError } from "../model/errors.ts";
import { systemClock } from "../platform/clock.ts";
import { systemScheduler } from "../platform/scheduler.ts";
import type { Logger } from "../ports/logger.ts";
import type { PeerAddress } from "../ports/peers.ts";
import type { ClusterTask } from "./cluster-child.ts";
import { STOP_SIGNALS } from "./process-lifecycle.ts";
import { EventLoopWatchdog, StartWatchdog } from "./child-process-watchdog.ts";

/**
 * The environment variable in which a parent process passes a {@link ShardTask} to a child process. It is removed before graphs are loaded.
 */
const TASK_VARIABLE = "HEDDLE_SHARD_PROCESS";

/** The delay before the restart of a process that has ended early, in milliseconds. It doubles with each further early end. */
export const FIRST_RESTART_DELAY_MS = 250;
const LONGEST_RESTART_DELAY_MS = 30_000;
/** A process that ends within this time after it was ready, or before it was, has ended early. */
const EARLY_END_MS = 10_000;

/** Milliseconds of delay for the next restart, if the process ends early again after a restart with `delay`. */
export const nextRestartDelay = (delay: number): number => Math.min(2 * delay, LONGEST_RESTART_DELAY_MS);

/**
 * Milliseconds before the restart of a process that has just ended: `delay` if it has ended early, otherwise
 * {@link FIRST_RESTART_DELAY_MS}. `readyAt`: when the process was ready, in milliseconds of the monotonic clock; undefined if it never was.
 */
export const restartDelayAfterEnd = (readyAt: number | undefined, delay: number): number =>
  readyAt === undefined || systemClock.mono() - readyAt < EARLY_END_MS ? delay : FIRST_RESTART_DELAY_MS;

/** The settings that a parent process passes to a child process when it starts it. */
export interface ShardTask extends Pick<ProcessPlace, "number" | "count"> {
  readonly port: number;
  readonly tokenSecret: string;
  /**
   * The directory of the Unix sockets on which the processes listen for each other. Only the operating system user of the server may enter
   * it. Absent in a cluster, whose processes connect by TCP.
   */
  readonly sockets?: string;
  /** The settings of the cluster. Absent if the server is not part of a cluster. */
  readonly cluster?: ClusterTask;
}

/** The message in which a child process reports to its parent that it accepts requests. */
export interface ReadyMessage extends Pick<App, "address" | "url" | "transport"> {
  /** The address on which the process listens for requests of other cluster nodes. Absent outside a cluster. */
  readonly peer?: PeerAddress;
}

type Report = ReadyMessage | { readonly failure: string };

/** The message in which a child process reports that it has prepared to serve a shard which its node does not own yet. */
const PREPARED = "prepared";

/** The message in which a child process that has not accepted requests yet reports that its start makes progress. */
const PROGRESS = "progress";
/** The shortest time between two such reports, in milliseconds. */
const PROGRESS_INTERVAL_MS = 1_000;

/**
 * Reads the task of this process from the environment, and removes it from the environment. Undefined if the process was not started with a
 * task, or if the task was read before.
 */
export function takeShardTask(env: NodeJS.ProcessEnv): ShardTask | undefined {
  const text = env[TASK_VARIABLE];
  delete env[TASK_VARIABLE];
  return text === undefined ? undefined : (JSON.parse(text) as ShardTask);
}

/** Sends a report to the parent process, then calls `then`. */
export function reportToParent(report: Report, then?: () => void): void {
  process.send?.(report, undefined, undefined, () => then?.());
}

/** Returns a function that reports to the parent process that the start of this process makes progress. */
export function progressReporter(): () => void {
  let reportedAt = -Infinity;
  return () => {
    const now = systemClock.mono();
    if (now - reportedAt < PROGRESS_INTERVAL_MS) return;
    reportedAt = now;
    process.send?.(PROGRESS, undefined, undefined, () => undefined);
  };
}

/** Reports to the parent process that this process has prepared to serve its shard. */
export const reportPrepared = (): void =>
  void process.send?.(PREPARED, undefined, undefined, () => undefined);

/** The message with which a parent asks a child process to end. */
const STOP = "stop";
/** The message with which a parent asks a child process to give up its shard, so that another node can take it. */
const HAND_OVER = "hand over";

/** The message with which a parent asks a child process whether it responds, and the response. */
const PING = "ping";
const PONG = "pong";

/**
 * The longest time in milliseconds that a shard waits for running graph nodes before it moves to another cluster node. Shorter than at a
 * shutdown, because requests for the shard wait too.
 */
const HAND_OVER_DRAIN_MS = 2_000;

/** The message in which a child process reports that it has given its shard up, and only forwards requests from then on. */
const RELEASED = "released";
/** The longest time in which a process gives its shard up, in milliseconds. Then it ends. */
const RELEASE_MS = 9_500;
/** The longest time for which a process that has given its shard up goes on forwarding requests of its clients, in milliseconds. */
const FORWARDING_MS = 300_000;

/**
 * Gives up the shard of this process, and reports that to the parent process. Resolves when no client is connected for a forwarded request
 * any more, or after {@link FORWARDING_MS}.
 */
export async function handOverShard(app: ShardApp): Promise<void> {
  const after = (ms: number) =>
    new Promise<"late">((resolve) => systemScheduler.after(ms, () => resolve("late")));
  const released = app.releaseShard(HAND_OVER_DRAIN_MS);
  if ((await Promise.race([released, after(RELEASE_MS)])) === "late") return;
  process.send?.(RELEASED, undefined, undefined, () => undefined);
  await Promise.race([app.forwardingEnded(), after(FORWARDING_MS)]);
}

/**
 * Handles the messages of the parent process: calls `stop` when the parent asks this process to end, calls `handOver` when it asks it to give
 * up its shard, and responds to pings. Calls `orphaned` when the parent has ended. Stop signals are ignored, because the parent handles them.
 */
export function handleParentMessages(stop: () => void, handOver: () => void, orphaned: () => void): void {
  for (const signal of STOP_SIGNALS) process.on(signal, () => undefined);
  process.on("message", (message) => {
    if (message === STOP) stop();
    if (message === HAND_OVER) handOver();
    if (message === PING) process.send?.(PONG, undefined, undefined, () => undefined);
  });
  process.on("disconnect", orphaned);
}

/**
 * A child process of a server. `started` resolves with the process's report when the process accepts requests, and rejects if the process
 * ends before that.
 */
export interface ShardChild {
  readonly process: ChildProcess;
  readonly started: Promise<ReadyMessage>;
}

/** When a child process counts as hanging. */
export interface HangLimits {
  /** A child process that responds to nothing for this time in milliseconds is killed. 0: never. */
  readonly hangLimitMs: number;
  /** A child process that neither accepts requests nor reports progress for this time in milliseconds after its start is killed. 0: never. */
  readonly startLimitMs: number;
}

const nameOf = (shard: number | undefined): string =>
  shard === undefined ? "the process that forwards requests" : "the process of a shard";

/** Kills child processes that hang. */
export class ChildProcessWatchdogs {
  readonly #limits: HangLimits;
  readonly #logger: Logger;
  /** The child processes that have not accepted requests yet. */
  readonly #starting = new Set<ChildProcess>();
  readonly #watchdogs = new Map<ChildProcess, EventLoopWatchdog>();

  constructor(options: HangLimits & { readonly logger: Logger }) {
    this.#limits = options;
    this.#logger = options.logger;
    // A process that hangs would not notice the end of this process, and would hold its port and its data for good.
    process.once("exit", () => {
      for (const [child, watchdog] of this.#watchdogs) if (watchdog.isUnresponsive) child.kill("SIGKILL");
      for (const child of this.#starting) child.kill("SIGKILL");
    });
  }

  /**
   * Watches the start of a child process. Calls `onKill` with the reason when the process is killed.
   * Returns the function that MUST be called when the process accepts requests.
   */
  watchStart(child: ChildProcess, shard: number | undefined, onKill: (reason: string) => void): () => void {
    const { startLimitMs } = this.#limits;
    const watchdog = new StartWatchdog({
      scheduler: systemScheduler,
      limitMs: startLimitMs,
      onHang: () => {
        const reason = `has not accepted requests ${startLimitMs / 1_000} seconds after its start or its last progress, and is killed`;
        this.#logger.error(`${nameOf(shard)} ${reason}`, {
          ...(shard !== undefined && { shard }),
          pid: child.pid,
        });
        child.kill("SIGKILL");
        onKill(reason);
      },
    });
    this.#starting.add(child);
    child.on("message", (message) => {
      if (message === PROGRESS) watchdog.progressed();
    });
    const stop = (): void => {
      watchdog.stop();
      this.#starting.delete(child);
    };
    child.once("exit", stop);
    return stop;
  }

  /** Watches a child process until it ends. `shard`: the number of its shard, if it has one. */
  watch(child: ChildProcess, shard: number | undefined): void {
    const { hangLimitMs } = this.#limits;
    const watchdog = new EventLoopWatchdog({
      scheduler: systemScheduler,
      limitMs: hangLimitMs,
      ping: () => child.send(PING, () => undefined),
      onHang: () => {
        this.#logger.error(
          `${nameOf(shard)} has not responded for ${hangLimitMs / 1_000} seconds and is killed`,
          {
            ...(shard !== undefined && { shard }),
            pid: child.pid,
          },
        );
        child.kill("SIGKILL");
      },
    });
    this.#watchdogs.set(child, watchdog);
    child.on("message", (message) => {
      if (message === PONG) watchdog.answered();
    });
    child.once("exit", () => {
      watchdog.stop();
      this.#watchdogs.delete(child);
    });
  }
}

/** Starts a child process. It is killed if it hangs, during its start or later, and ends as if it had crashed. */
export function startShardProcess(task: ShardTask, watchdogs: ChildProcessWatchdogs): ShardChild {
  const child = fork(process.argv[1] as string, process.argv.slice(2), {
    env: { ...process.env, [TASK_VARIABLE]: JSON.stringify(task) },
  });
  const name = task.number === undefined ? "that forwards requests" : `of shard ${task.number}`;
  const started = new Promise<ReadyMessage>((resolve, reject) => {
    const hasStarted = watchdogs.watchStart(child, task.number, (reason) =>
      reject(new ServiceError("config.invalid", `the process ${name} ${reason}`)),
    );
    const listen = (report: Report | typeof PROGRESS | typeof PREPARED): void => {
      if (report === PROGRESS || report === PREPARED) return;
      child.off("message", listen);
      hasStarted();
      if (!("failure" in report)) return resolve(report);
      reject(new ServiceError("config.invalid", report.failure));
    };
    child.on("message", listen);
    child.once("exit", (code, signal) =>
      reject(new ServiceError("config.invalid", `the process ${name} ended: ${signal ?? code}`)),
    );
    child.once("error", reject);
  });
  started.then(
    () => watchdogs.watch(child, task.number),
    () => undefined,
  );
  return { process: child, started };
}

/** Resolves when a process reports that it has prepared to serve its shard. */
export const whenPrepared = ({ process }: ShardChild): Promise<void> =>
  new Promise((resolve) => {
    process.on("message", (message) => {
      if (message === PREPARED) resolve();
    });
  });

export const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean =>
  exitCode !== null || signalCode !== null;

/** Asks a process to stop. Resolves when the process has ended. */
export function stopShardProcess(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (hasEnded(child)) return resolve();
    child.once("exit", () => resolve());
    child.send(STOP, () => undefined);
  });
}

/**
 * Asks a process to give up its shard. Resolves when it has done so, or has ended. A process that has clients for which it forwards requests
 * goes on for some time, and then ends by itself.
 */
export function releaseShardOf(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (hasEnded(child)) return resolve();
    child.once("exit", () => resolve());
    child.on("message", (message) => {
      if (message === RELEASED) resolve();
    });
    child.send(HAND_OVER, () => undefined);
  });
}

/** The network of processes on one machine: the process of each shard listens on a Unix socket in the directory `sockets`. */
export function createUnixNetwork(sockets: string, number: number | undefined): ProcessNetwork {
  const addressOf = (shard: number): PeerAddress => ({ path: join(sockets, String(shard)) });
  return { own: addressOf(number ?? 0), addressOf, isOwner: () => true };
}

/** Starts the processes of a server, one for each shard, and restarts a process that has ended. */
export class ShardProcesses {
  readonly #task: Omit<ShardTask, "number" | "sockets">;
  readonly #watchdogs: ChildProcessWatchdogs;
  readonly #logger: Logger;
  readonly #sockets = mkdtempSync(join(tmpdir(), "heddle-"));
  readonly #children = new Map<number, ChildProcess>();
  /**
   * Undefined means `STOP_MS` of `process-lifecycle.ts`. The processes stop at the same time, so the time limit of one process holds for
   * all.
   */
  readonly stopMs = undefined;
  #isStopping = false;

  constructor(
    task: Omit<ShardTask, "number" | "sockets">,
    options: HangLimits & { readonly logger: Logger },
  ) {
    this.#task = task;
    this.#watchdogs = new ChildProcessWatchdogs(options);
    this.#logger = options.logger;
    process.once("exit", () => rmSync(this.#sockets, { recursive: true, force: true }));
  }

  /**
   * Starts the processes of all shards, and resolves with the report of shard 0.
   * @throws the error of a process that could not start; all processes are then ended
   */
  async start(): Promise<ReadyMessage> {
    try {
      const numbers = Array.from({ length: this.#task.count }, (_, number) => number);
      const started = await Promise.all(
        numbers.map((number) => this.#startKept(number, FIRST_RESTART_DELAY_MS)),
      );
      return started[0] as (typeof started)[number];
    } catch (cause) {
      this.#isStopping = true;
      for (const child of this.#children.values()) child.kill("SIGKILL");
      throw cause;
    }
  }

  /** Starts the process of a shard. Once it accepts requests, it is restarted when it ends. */
  async #startKept(number: number, delay: number): Promise<ReadyMessage> {
    const child = startShardProcess({ ...this.#task, number, sockets: this.#sockets }, this.#watchdogs);
    this.#children.set(number, child.process);
    const started = await child.started;
    this.#keep(number, delay);
    return started;
  }

  /** Restarts the process of a shard when it ends. */
  #keep(number: number, delay: number): void {
    const readyAt = systemClock.mono();
    this.#children.get(number)?.once("exit", (code, signal) => {
      if (this.#isStopping) return;
      this.#logger.error("the process of a shard ended; it is started again", {
        shard: number,
        code,
        signal,
      });
      this.#restart(number, restartDelayAfterEnd(readyAt, delay));
    });
  }

  #restart(number: number, delay: number): void {
    const next = nextRestartDelay(delay);
    systemScheduler.after(delay, () => {
      if (this.#isStopping) return;
      this.#startKept(number, next).catch((cause: unknown) => {
        if (this.#isStopping) return;
        this.#logger.error("the process of a shard could not be started", { shard: number, cause });
        this.#restart(number, next);
      });
    });
  }

  async close(): Promise<void> {
    this.#isStopping = true;
    await Promise.all([...this.#children.values()].map((child) => stopShardProcess(child)));
  }
}
