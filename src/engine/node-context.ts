import type { JsonObject } from "../model/json.ts";
import type { MachineMailbox } from "../model/machine-mailbox.ts";
import { toJsonText } from "../model/stringify-json.ts";
import type { NodeCall } from "../ports/engine.ts";
import type { NodeIo } from "../ports/node-executor.ts";
import type { Ctx, Log } from "../graph/node-context.ts";
import { createNodeLog, type NodeLogDeps } from "./node-log.ts";
import { createMessageMaker } from "./message-writer.ts";
import type { TaskInterrupts } from "./task-interrupts.ts";
import { checkedInterrupt, runParallel } from "./parallel-functions.ts";
import { CtxStore } from "./node-store.ts";
import { CtxStepResults, createStepFunction } from "./ctx-step-results.ts";

/**
 * Makes the `ctx` argument of a node function.
 * @param check throws once this attempt of the task is over
 * @param onCustomId called with each message id that the node chooses itself
 */
export function createNodeContext(
  call: NodeCall,
  io: NodeIo,
  logs: NodeLogDeps & Pick<Tools, "now">,
  interrupts: TaskInterrupts,
  check: () => void,
  onCustomId: (id: string) => void,
): Ctx<JsonObject> {
  const steps = new CtxStepResults(call, io, check);
  const emitIn = (ns: string, data: unknown) => {
    check();
    io.emit({ t: "custom", ns, json: toJsonText(data, "emit") });
  };
  const context = new Context(
    { call, io, logs, log: undefined },
    {
      interrupt: checkedInterrupt(interrupts.ask, check),
      step: createStepFunction(steps, check, ""),
      emit: (data) => emitIn(call.ns, data),
      "~emitIn": emitIn,
      "~reportTool": (data) => {
        check();
        io.emit({ t: "tool", ns: call.ns, json: toJsonText(data, "tools") });
      },
      message: createMessageMaker(call, io, check, onCustomId),
      store: new CtxStore(io, check),
      now: logs.now,
      "~parallel": (bodies) =>
        runParallel(context, "", interrupts.ask, bodies, { questions: interrupts, steps, check }),
    },
  );
  return context;
}

const PARTS = Symbol("parts");

interface Parts {
  readonly call: NodeCall;
  readonly io: NodeIo;
  readonly logs: NodeLogDeps;
  log: Log | undefined;
}

interface Tools extends Required<
  Pick<Ctx, "interrupt" | "step" | "emit" | "message" | "store" | "~parallel" | "~emitIn" | "~reportTool">
> {
  readonly now: () => number;
}

class Context implements Ctx<JsonObject> {
  readonly interrupt: Ctx["interrupt"];
  readonly step: Ctx["step"];
  readonly emit: Ctx["emit"];
  readonly message: Ctx["message"];
  declare readonly signal: AbortSignal;
  readonly config: JsonObject;
  readonly context: JsonObject;
  readonly runId: string;
  readonly threadId: string;
  readonly taskId: string;
  readonly attempt: number;
  readonly ns: string;
  readonly store: Ctx["store"];
  declare readonly log: Log;
  readonly "~parallel": Tools["~parallel"];
  readonly "~now": Tools["now"];
  readonly "~emitIn": Tools["~emitIn"];
  readonly "~reportTool": Tools["~reportTool"];
  /**
   * The services that the lazy getters use. This is not a `#private` field, because objects that have this context as their
   * prototype need it too.
   */
  readonly [PARTS]: Parts;

  get "~isAnswered"(): boolean {
    return this[PARTS].call.resumes.length > 0;
  }

  get "~mailbox"(): MachineMailbox | undefined {
    return this[PARTS].io.mailbox;
  }

  constructor(parts: Parts, tools: Tools) {
    const { call } = parts;
    this[PARTS] = parts;
    this.interrupt = tools.interrupt;
    this.step = tools.step;
    this.emit = tools.emit;
    this.message = tools.message;
    this.config = call.config;
    this.context = call.context;
    this.runId = call.run;
    this.threadId = call.thread;
    this.taskId = call.task;
    this.attempt = call.attempt;
    this.ns = call.ns;
    this.store = tools.store;
    this["~parallel"] = tools["~parallel"];
    this["~now"] = tools.now;
    this["~emitIn"] = tools["~emitIn"];
    this["~reportTool"] = tools["~reportTool"];
    Object.defineProperties(this, lazy);
  }
}

/**
 * Properties that are computed when they are read. They are own properties, so that a copy by spread includes them. All
 * contexts share these getters: V8 would allocate getters of an object literal in the old generation, where they would
 * keep the whole run in memory until a full garbage collection.
 */
const lazy: PropertyDescriptorMap & ThisType<Context> = {
  signal: {
    get() {
      return this[PARTS].io.signal;
    },
    enumerable: true,
  },
  log: {
    get() {
      const parts = this[PARTS];
      return (parts.log ??= createNodeLog(parts.call, parts.io, parts.logs));
    },
    enumerable: true,
  },
};
