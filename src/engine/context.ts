import { toStorable, type JsonObject } from "../model/json.ts";
import type { NodeCall } from "../ports/engine.ts";
import type { NodeIo } from "../ports/host.ts";
import type { Logger } from "../ports/logger.ts";
import type { Ctx, Log } from "../graph/context.ts";
import { messageMaker } from "./message.ts";
import type { Questions } from "./questions.ts";

const MAX_KEY = 256;

function loggerOf(call: NodeCall, logger: Logger): Log {
  const where = { run_id: call.run, thread_id: call.thread, node: call.node };
  return {
    debug: (message, fields) => logger.debug(message, { ...fields, ...where }),
    info: (message, fields) => logger.info(message, { ...fields, ...where }),
    warn: (message, fields) => logger.warn(message, { ...fields, ...where }),
    error: (message, fields) => logger.error(message, { ...fields, ...where }),
  };
}

/** `ctx.step`: what a key's function returned, kept for every replay of the task. */
function stepper(call: NodeCall, io: NodeIo, check: () => void): Ctx["step"] {
  /** In this attempt, also those that still run: a key is never run twice. */
  const running = new Map<string, Promise<unknown>>();
  const run = async (key: string, fn: () => unknown): Promise<unknown> => {
    if (Object.hasOwn(call.steps, key)) return call.steps[key];
    const value = toStorable(await fn(), `step ${JSON.stringify(key)}`);
    check();
    await io.record(key, value);
    return value;
  };
  return async <T>(key: string, fn: () => T | Promise<T>): Promise<T> => {
    check();
    if (typeof key !== "string" || key === "" || key.length > MAX_KEY || key === "__proto__") {
      throw new TypeError(`ctx.step needs a key of 1 to ${MAX_KEY} characters`);
    }
    let result = running.get(key);
    if (result === undefined) {
      result = run(key, fn);
      running.set(key, result);
    }
    // A copy: what is stored must not change when the node changes what it got.
    return toStorable(await result, "step") as T;
  };
}

/** What a node's body may do. `check` throws once the attempt is over. */
export function contextOf(
  call: NodeCall,
  io: NodeIo,
  logger: Logger,
  questions: Questions,
  check: () => void,
  named: (id: string) => void,
): Ctx<JsonObject> {
  let log: Log | undefined;
  return {
    interrupt: (value, options) => {
      check();
      return questions.ask(value, options);
    },
    step: stepper(call, io, check),
    emit(data) {
      check();
      io.emit({ t: "custom", ns: call.ns, data: toStorable(data, "emit") });
    },
    message: messageMaker(call, io, check, named),
    get signal() {
      return io.signal;
    },
    config: call.config,
    context: call.context,
    runId: call.run,
    threadId: call.thread,
    taskId: call.task,
    attempt: call.attempt,
    ns: call.ns,
    get log() {
      return (log ??= loggerOf(call, logger));
    },
  };
}
