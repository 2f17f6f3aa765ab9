import { toPlainError } from "../model/errors.ts";
import { isObject, toStorable, type JsonObject } from "../model/json.ts";
import { withoutTsxUrls } from "../model/stack-without-tsx-urls.ts";
import type { NodeCall } from "../ports/engine.ts";
import type { Clock } from "../ports/clock.ts";
import type { NodeIo } from "../ports/node-executor.ts";
import type { Logger, LogLevel } from "../ports/logger.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { Log } from "../graph/node-context.ts";

/** The most log lines of one attempt of a task that become events of the run. The server's own log has all of them. */
const MAX_LINES = 1_000;
/** The most characters of the message, and of the JSON text of the fields, in an event. */
const MAX_LENGTH = 4_096;
/** The most characters of a stack trace. */
const MAX_STACK_LENGTH = 8_192;

export interface NodeLogDeps {
  readonly logger: Logger;
  readonly clock: Clock;
  readonly scheduler: Pick<Scheduler, "soon">;
  /** True: the stack traces of failures are in the run's events, where clients see them. Default: false. */
  readonly stacks?: boolean;
}

/** Makes `ctx.log`: lines go to the server's log and, except those of level `debug`, to the run's events. */
export function createNodeLog(call: NodeCall, io: NodeIo, { logger, clock }: NodeLogDeps): Log {
  const where = { run_id: call.run, thread_id: call.thread, node: call.node };
  let lines = 0;
  const at =
    (level: LogLevel) =>
    (message: string, fields?: JsonObject): void => {
      logger[level](message, { ...fields, ...where });
      if (level === "debug" || lines++ >= MAX_LINES) return;
      emitLog(call, io, clock.now(), level, String(message), storableFields(fields));
    };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** An error that a node function threw, and when, in epoch milliseconds. */
export interface NodeFailure {
  readonly thrown: unknown;
  readonly at: number;
}

/**
 * Logs a failed attempt of a task. Clients see the error's name and message; the stack goes to the server's log, and to
 * clients if `stacks` is set.
 */
export function logFailure(
  { logger, scheduler, stacks }: NodeLogDeps,
  call: NodeCall,
  io: NodeIo,
  { thrown, at }: NodeFailure,
): void {
  const { graph, node, ns, run, thread, attempt: begun, try: tried } = call;
  const { error, message } = toPlainError(thrown);
  const what = `${error}: ${message}`;
  const stack = stacks === true ? stackOf(thrown) : undefined;
  emitLog(call, io, at, "error", what, {
    ...(stack !== undefined && { stack }),
    ...(call.tries > 1 && { try: tried }),
  });
  const write = () =>
    logger.warn("a node failed", {
      graph,
      node,
      ...(ns !== "" && { ns }),
      run_id: run,
      thread_id: thread,
      attempt: begun,
      try: tried,
      error: stack ?? stackOf(thrown) ?? what,
    });
  // Waits until the task's outcome is handed on: the first read of a stack makes Node read the source maps of the files
  // in it, which may block the thread for tens of milliseconds.
  scheduler.soon(write);
}

/** The stack trace, with at most {@link MAX_STACK_LENGTH} characters; undefined if there is none. */
function stackOf(thrown: unknown): string | undefined {
  return thrown instanceof Error && typeof thrown.stack === "string"
    ? withoutTsxUrls(thrown.stack).slice(0, MAX_STACK_LENGTH)
    : undefined;
}

function emitLog(
  call: NodeCall,
  io: NodeIo,
  at: number,
  level: LogLevel,
  message: string,
  more: { readonly fields?: JsonObject; readonly stack?: string; readonly try?: number },
): void {
  io.emit({
    t: "log",
    ns: call.ns,
    task: call.task,
    node: call.node,
    level,
    at,
    message: message.length <= MAX_LENGTH ? message : `${message.slice(0, MAX_LENGTH)}…`,
    ...more,
  });
}

/** The fields, if they can be stored and are not too long; else none, because a log line must not fail a run. */
function storableFields(fields: JsonObject | undefined): { readonly fields?: JsonObject } {
  if (fields === undefined) return {};
  try {
    const storable = toStorable(fields, "log");
    return isObject(storable) && JSON.stringify(storable).length <= MAX_LENGTH ? { fields: storable } : {};
  } catch {
    return {};
  }
}
