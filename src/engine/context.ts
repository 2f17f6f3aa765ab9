import { toStorable, type JsonObject } from "../model/json.ts";
import type { NodeCall } from "../ports/engine.ts";
import type { NodeIo } from "../ports/host.ts";
import type { Ctx, Log } from "../graph/context.ts";
import { logOf, type LogDeps } from "./log-lines.ts";
import { messageMaker } from "./message.ts";
import type { Questions } from "./questions.ts";
import { asking, sideBySide } from "./sides.ts";
import { AttemptStore } from "./node-store.ts";
import { Steps, stepper } from "./steps.ts";

/** What a node's body may do. `check` throws once the attempt is over. */
export function contextOf(
  call: NodeCall,
  io: NodeIo,
  logs: LogDeps,
  questions: Questions,
  check: () => void,
  named: (id: string) => void,
): Ctx<JsonObject> {
  let log: Log | undefined;
  const steps = new Steps(call, io, check);
  const ctx: Ctx<JsonObject> = {
    interrupt: asking(questions.ask, check),
    step: stepper(steps, check, ""),
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
    store: new AttemptStore(io, check),
    get log() {
      return (log ??= logOf(call, io, logs));
    },
    "~sides": (sides) => sideBySide(ctx, "", questions.ask, sides, { questions, steps, check }),
  };
  return ctx;
}
