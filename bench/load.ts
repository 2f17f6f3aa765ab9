/** The load process: takes jobs over IPC, one at a time, and sends back the result of each. */
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
