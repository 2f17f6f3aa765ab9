import { plainError } from "../model/errors.ts";
import { isObject, toStorable, type JsonObject } from "../model/json.ts";
import { readableStack } from "../model/stack-trace.ts";
import type { NodeCall } from "../ports/engine.ts";
import type { Clock } from "../ports/clock.ts";
import type { NodeIo } from "../ports/node-host.ts";
import type { Logger, LogLevel } from "../ports/logger.ts";
import type { Log } from "../graph/node-context.ts";

/** Lines that one attempt of a task keeps with its run, and characters of one: the server's own log has all. */
const MOST_LINES = 1_000;
const LONGEST = 4_096;
const LONGEST_STACK = 8_192;

export interface LogDeps {
  readonly logger: Logger;
  readonly clock: Clock;
  /** Are the stacks of failures kept with the run, where clients find them? Default: no. */
  readonly stacks?: boolean;
}

/** What a node logs: goes to the server's log, and (`debug` left out) with the run's events to who follows it. */
export function logOf(call: NodeCall, io: NodeIo, { logger, clock }: LogDeps): Log {
  const where = { run_id: call.run, thread_id: call.thread, node: call.node };
  let lines = 0;
  const at =
    (level: LogLevel) =>
    (message: string, fields?: JsonObject): void => {
      logger[level](message, { ...fields, ...where });
      if (level === "debug" || lines++ >= MOST_LINES) return;
      keep(call, io, clock, level, String(message), keepable(fields));
    };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** A try has failed. Clients are told what was thrown; where, the server's own log is, and they only where that was set. */
export function tellFailure(
  { logger, clock, stacks }: LogDeps,
  call: NodeCall,
  io: NodeIo,
  thrown: unknown,
): void {
  const { graph, node, ns, run, thread, attempt: begun, try: tried } = call;
  const { error, message } = plainError(thrown);
  const what = `${error}: ${message}`;
  const stack = stackOf(thrown);
  keep(call, io, clock, "error", what, undefined, stacks === true ? stack : undefined);
  logger.warn("a node failed", {
    graph,
    node,
    ...(ns !== "" && { ns }),
    run_id: run,
    thread_id: thread,
    attempt: begun,
    try: tried,
    error: stack ?? what,
  });
}

/** Where it was thrown; undefined where that is not known. */
function stackOf(thrown: unknown): string | undefined {
  return thrown instanceof Error && typeof thrown.stack === "string"
    ? readableStack(thrown.stack).slice(0, LONGEST_STACK)
    : undefined;
}

function keep(
  call: NodeCall,
  io: NodeIo,
  clock: Clock,
  level: LogLevel,
  message: string,
  fields?: JsonObject,
  stack?: string,
): void {
  io.emit({
    t: "log",
    ns: call.ns,
    task: call.task,
    node: call.node,
    level,
    at: clock.now(),
    message: message.length <= LONGEST ? message : `${message.slice(0, LONGEST)}…`,
    ...(fields !== undefined && { fields }),
    ...(stack !== undefined && { stack }),
  });
}

/** A log line must not cost a run: fields that cannot be stored, or are too long, are left out. */
function keepable(fields: JsonObject | undefined): JsonObject | undefined {
  if (fields === undefined) return undefined;
  try {
    const storable = toStorable(fields, "log");
    return isObject(storable) && JSON.stringify(storable).length <= LONGEST ? storable : undefined;
  } catch {
    return undefined;
  }
}
