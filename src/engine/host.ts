import { ServiceError } from "../model/errors.ts";
import type { NodeCall, TaskOutcome } from "../ports/engine.ts";
import type { Host, NodeIo } from "../ports/host.ts";
import type { Logger } from "../ports/logger.ts";
import type { Random } from "../ports/random.ts";
import type { GraphRegistry } from "../graph/registry.ts";
import { contextOf } from "./context.ts";
import { failure, Questions } from "./questions.ts";

export interface HostDeps {
  readonly logger: Logger;
  readonly random: Random;
}

/** Runs node bodies in this thread. */
export function localHost(registry: GraphRegistry, { logger }: HostDeps): Host {
  return {
    run: (call, io) => attempt(registry, call, io, logger),
    close: () => Promise.resolve(),
  };
}

async function attempt(
  registry: GraphRegistry,
  call: NodeCall,
  io: NodeIo,
  logger: Logger,
): Promise<TaskOutcome> {
  let over = false;
  const check = () => {
    if (over)
      throw new TypeError(`This attempt of node "${call.node}" is over: its ctx does nothing any more`);
  };
  // Also what reaches past the checks, such as a message begun in time, is cut off at the end.
  const own: NodeIo = {
    emit: (fact) => (over ? -1 : io.emit(fact)),
    record: (step, value) => io.record(step, value),
    get signal() {
      return io.signal;
    },
  };
  try {
    const node = registry.at(call.graph, call.edition).nodes.get(call.node);
    if (node === undefined) {
      throw new ServiceError("graph.not_found", `Graph "${call.graph}" has no node "${call.node}"`);
    }
    const questions = new Questions(call);
    let outcome: TaskOutcome;
    try {
      let streamed: string[] | undefined;
      const named = (id: string) => void (streamed ??= []).push(id);
      const value = await node.run(call.input, contextOf(call, own, logger, questions, check, named));
      outcome = streamed === undefined ? { kind: "returned", value } : { kind: "returned", value, streamed };
    } catch (thrown) {
      outcome = failure(thrown);
    }
    // A body that swallowed the pause, or threw something else on its way out, waits all the same.
    return questions.outcome() ?? outcome;
  } catch (thrown) {
    return failure(thrown);
  } finally {
    over = true;
  }
}
