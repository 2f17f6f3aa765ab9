import { createInThreadNodeExecutor } from "../engine/in-thread-node-executor.ts";
import { GraphRegistry } from "../graph/graph-registry.ts";
import type { Config } from "../config/config.ts";
import { loadGraphs } from "../graph-loader/load-graphs.ts";
import { toPlainError } from "../model/errors.ts";
import { systemClock } from "../platform/clock.ts";
import { registerSdkLogger } from "../platform/sdk-logger.ts";
import { systemRandom } from "../platform/random.ts";
import { systemScheduler } from "../platform/scheduler.ts";
import { connectToParent, workerStartData } from "../platform/worker-thread.ts";
import { logUncaughtErrors } from "../platform/uncaught-errors.ts";
import { WorkerNodeRunner } from "../workers/worker-node-runner.ts";
import type { FromWorker, ToWorker } from "../workers/worker-messages.ts";

// The entry point of a worker thread. The thread loads the graph files of a configuration, and runs their node functions for the server.
const parent = connectToParent<readonly FromWorker[], ToWorker>();
const random = systemRandom();
const registry = new GraphRegistry();
try {
  const { stacks, ...config } = workerStartData() as Pick<Config, "path" | "graphs"> & { stacks: boolean };
  const bodies = new WorkerNodeRunner(
    { post: (messages) => parent.post(messages), scheduler: systemScheduler },
    (logger) =>
      createInThreadNodeExecutor(registry, {
        logger,
        random,
        clock: systemClock,
        scheduler: systemScheduler,
        stacks,
      }),
    (graph) => registry.current(graph).edition,
  );
  registerSdkLogger(bodies.logger);
  const { graphs } = await loadGraphs(config, { scheduler: systemScheduler });
  registry.replace(graphs);
  logUncaughtErrors(bodies.logger);
  process.on("exit", (code) => {
    // The stack shows from where `process.exit` was called. The message is posted directly instead of in a later batch, because the thread
    // ends now.
    const { stack } = new Error("process.exit was called");
    const message = "process.exit in a graph ended its worker thread";
    parent.post([{ t: "log", level: "error", message, fields: { code, stack } }]);
  });
  parent.onMessage((message) => bodies.receive(message));
  bodies.post({ t: "ready" });
} catch (cause) {
  parent.post([{ t: "refused", error: toPlainError(cause) }]);
}
