/**
 * The load process: receives jobs over IPC and sends back the result of each. The bench sends a job only after the
 * previous result.
 */
import type { Job } from "./load/job.ts";
import { perform } from "./load/perform.ts";

if (process.send === undefined)
  throw new Error("load.ts is started by the bench, which gives it jobs over IPC");

process.on("message", (job: Job) => {
  perform(job).then(
    (result) => process.send?.({ result }),
    (error: unknown) => process.send?.({ error: error instanceof Error ? error.message : String(error) }),
  );
});
process.on("disconnect", () => process.exit(0));
process.send({ ready: true });
