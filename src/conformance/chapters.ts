import { assistantChecks } from "./chapters/assistants.ts";
import { cronChecks } from "./chapters/crons.ts";
import { errorChecks } from "./chapters/errors.ts";
import { interruptChecks } from "./chapters/interrupts.ts";
import { multitaskChecks } from "./chapters/multitask.ts";
import { runChecks } from "./chapters/runs.ts";
import { stateChecks } from "./chapters/states.ts";
import { statelessRunChecks } from "./chapters/stateless-runs.ts";
import { storeChecks } from "./chapters/store.ts";
import { streamModeChecks } from "./chapters/stream-modes.ts";
import { threadProtocolChecks } from "./chapters/thread-protocol.ts";
import { threadChecks } from "./chapters/threads.ts";
import { webhookChecks } from "./chapters/webhooks.ts";
import type { Chapter } from "./conformance-check.ts";

/** All chapters (groups of checks, one for each part of the API), in the order of the report. */
export const chapters: readonly Chapter[] = [
  assistantChecks,
  threadChecks,
  runChecks,
  statelessRunChecks,
  streamModeChecks,
  threadProtocolChecks,
  interruptChecks,
  multitaskChecks,
  stateChecks,
  storeChecks,
  cronChecks,
  webhookChecks,
  errorChecks,
];
