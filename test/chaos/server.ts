/** The server under chaos: Heddle, unchanged, on a real directory, with the faults that the driver requests. */
import { unlimitedConcurrency } from "../../actors/concurrency-limiter.ts";
import { type App, createApp } from "../../src/app.ts";
import { guardProcess } from "../../src/cli/process-lifecycle.ts";
import type { Failpoints } from "../../src/ports/failpoints.ts";
import { chaos, machine } from "./graphs.ts";
import { plantedStorage } from "./planted-faults.ts";
import { plantParkedEnding } from "../simulation/planted-faults.ts";
import type { Setup } from "./process.ts";

const setup = JSON.parse(process.env["HEDDLE_CHAOS"] ?? "{}") as Setup;

/** Kills the process when it passes a failpoint for the n-th time: no handler, no flush. */
function dying({ place, count }: NonNullable<Setup["dieAt"]>): Failpoints {
  let left = count;
  return {
    hit: (here) => {
      if (here === place && --left === 0) process.kill(process.pid, "SIGKILL");
    },
  };
}

/** Loaded on demand: LangGraph.js takes longer to load than all of Heddle. */
async function twins() {
  const { served } = await import("../langgraph/support.ts");
  const { twin } = await import("../langgraph/twin.ts");
  return served({ hosted: twin(chaos, new Map()) });
}

/** The server's fault messages go to the driver's output. */
const logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: (message: string, fields: object = {}) => console.error(message, fields),
};

if (setup.plant === "parked-ending") plantParkedEnding();
let app: App | undefined;
guardProcess(logger, () => app);
app = await createApp({
  logger,
  graphs: { chaos, machine },
  ...(setup.hosted === true && { langGraphs: await twins() }),
  webhooks: { allow_internal: true },
  limits: { linger: setup.linger, concurrent: { ...unlimitedConcurrency, ...setup.slots } },
  data: plantedStorage(setup.data, setup.plant),
  ...(setup.dieAt === undefined ? {} : { failpoints: dying(setup.dieAt) }),
});
process.send?.({ port: app.address.port });
process.on("disconnect", () => process.exit(0));
