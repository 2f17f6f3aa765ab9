/** Heddle under measurement: the whole server in a process of its own, which tells its storage's counts over IPC. */
import { createApp } from "../../src/app.ts";
import { cold } from "../cold.ts";
import * as graphs from "../graphs.ts";
import { ownStats, reportOver } from "./report.ts";

const [, , data = "", idle = ""] = process.argv;
const app = await createApp({
  graphs: { ...graphs, cold },
  data,
  ...(idle === "" ? {} : { limits: { idle: Number(idle) } }),
});
reportOver(
  app.address.port,
  () => ({ ...ownStats(), storage: app.storage.stats(), live: app.system.counts.live }),
  () => app.close(),
);
