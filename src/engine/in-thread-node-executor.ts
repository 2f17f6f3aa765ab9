import { ServiceError } from "../model/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { NodeCall, TaskOutcome } from "../ports/engine.ts";
import type { NodeExecutor, NodeIo } from "../ports/node-executor.ts";
import type { Logger } from "../ports/logger.ts";
import type { Random } from "../ports/random.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import { MonotonicEpochClock } from "../ports/monotonic-epoch-clock.ts";
import { subgraphDefinitionAt } from "../graph/definition.ts";
import type { GraphRegistry } from "../graph/graph-registry.ts";
import { NodeResultCache } from "./node-result-cache.ts";
import { createNodeContext } from "./node-context.ts";
import { logFailure, type NodeFailure } from "./node-log.ts";
import { failedOutcome, TaskInterrupts } from "./task-interrupts.ts";
import { isRetryable } from "./retryable-errors.ts";

export interface LocalExecutorDeps {
  readonly logger: Logger;
  readonly random: Random;
  readonly clock: Clock;
  readonly scheduler: Pick<Scheduler, "soon">;
  /** True: the stack traces of failed nodes are sent to clients. Default: false. */
  readonly stacks?: boolean;
}

/** Makes an executor that runs node functions in this thread. */
export function createInThreadNodeExecutor(
  registry: GraphRegistry,
  { logger, clock, scheduler, stacks = false }: LocalExecutorDeps,
): NodeExecutor {
  const time = new MonotonicEpochClock(clock);
  const parts = {
    registry,
    logger,
    clock,
    scheduler,
    stacks,
    now: () => time.now(),
    cache: new NodeResultCache(),
  };
  return {
    run: (call, io) => runAttempt(parts, call, io),
    close: () => Promise.resolve(),
  };
}

interface Parts {
  readonly registry: GraphRegistry;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly scheduler: Pick<Scheduler, "soon">;
  readonly stacks: boolean;
  readonly now: () => number;
  readonly cache: NodeResultCache;
}

async function runAttempt(parts: Parts, call: NodeCall, io: NodeIo): Promise<TaskOutcome> {
  const { registry, clock, cache } = parts;
  let isOver = false;
  const check = () => {
    if (isOver)
      throw new TypeError(`This attempt of node "${call.node}" is over: its ctx does nothing any more`);
  };
  try {
    const node = subgraphDefinitionAt(registry.at(call.graph, call.edition), call.ns).nodes.get(call.node);
    if (node === undefined) {
      throw new ServiceError("graph.not_found", `Graph "${call.graph}" has no node "${call.node}"`);
    }
    // A task with answers to interrupts does not use the cache: the answers may change the result, and they are not part of the cache key.
    const key = node.cache === null || call.resumes.length > 0 ? null : cache.keyOf(node.cache, call);
    const known = key === null ? undefined : cache.get(node, key, clock.mono());
    if (known !== undefined) return { kind: "returned", value: known.value, cached: true };
    const questions = new TaskInterrupts(call);
    let outcome: TaskOutcome;
    let failure: NodeFailure | undefined;
    try {
      let streamed: string[] | undefined;
      const named = (id: string) => void (streamed ??= []).push(id);
      const value = await node.run(call.input, createNodeContext(call, io, parts, questions, check, named));
      outcome = streamed === undefined ? { kind: "returned", value } : { kind: "returned", value, streamed };
    } catch (thrown) {
      failure = { thrown, at: clock.now() };
      outcome = { ...failedOutcome(thrown), at: failure.at };
      if (call.tries > 1 && !isRetryable(node.retry, thrown)) outcome = { ...outcome, final: true };
    }
    // Open interrupts pause the task, even if the node function caught the pause signal or threw another error.
    const waits = questions.outcome();
    if (waits !== undefined) return waits;
    if (failure !== undefined && outcome.kind === "failed" && !io.signal.aborted) {
      logFailure(parts, call, io, failure);
      outcome = { ...outcome, isLogged: true };
    }
    if (key !== null && node.cache !== null && outcome.kind === "returned") {
      cache.put(node, node.cache, key, outcome.value, clock.mono());
    }
    return outcome;
  } catch (thrown) {
    return failedOutcome(thrown);
  } finally {
    isOver = true;
    io.end();
  }
}
