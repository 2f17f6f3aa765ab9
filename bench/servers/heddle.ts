/** Heddle under measurement: the whole server in a process of its own, which tells its storage's counts over IPC. */
import { join } from "node:path";
import { createApp } from "../../src/app.ts";
import { ownStats, reportOver } from "./report.ts";

const [, , data = "", idle = ""] = process.argv;
const app = await createApp({
  config: join(import.meta.dirname, "..", "heddle.json"),
  data,
  host: "127.0.0.1",
  port: 0,
  ...(idle === "" ? {} : { limits: { idle: Number(idle) } }),
});
reportOver(
  app.address.port,
  () => ({ ...ownStats(), storage: app.storage.stats(), live: app.system.counts.live }),
  () => app.close(),
);
