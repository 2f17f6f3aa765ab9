import { pairedId } from "../../model/ids.ts";
import type { AssistantRecord } from "../../model/assistant.ts";
import type { CronRecord } from "../../model/cron.ts";
import { ServiceError } from "../../model/errors.ts";
import type { Engine } from "../../ports/engine.ts";
import type { Journal } from "../../ports/journal.ts";
import { runDraftOf, type RunRequest } from "../run-draft.ts";
import { resolveRunStart } from "../start-checkpoint.ts";

/** The request for the run that a cron starts at each time of its schedule. */
export function cronRunRequest(cron: CronRecord): RunRequest {
  const { cron_id, thread_id, assistant_id, payload, metadata, on_run_completed } = cron;
  return {
    multitask_strategy: "enqueue",
    ...payload,
    assistant_id,
    metadata: { ...metadata, cron_id },
    origin: "cron",
    ...(thread_id === null && on_run_completed === "keep" && { on_completion: "keep" }),
  };
}

interface Deps {
  readonly engine: Engine;
  readonly journal: Journal;
}

/**
 * Checks whether the runs of a cron will be refused, so that the error is reported when the cron is created or changed. Conditions that
 * depend on the later state of the thread cannot be checked here.
 * @throws ServiceError `validation.failed`, with the invalid fields
 */
export async function checkCronRun(
  { engine, journal }: Deps,
  tenant: string,
  cron: CronRecord,
  assistant: AssistantRecord,
): Promise<void> {
  const request = cronRunRequest(cron);
  const thread_id = cron.thread_id ?? pairedId(cron.cron_id);
  let from;
  try {
    from = await resolveRunStart(journal, { tenant, thread: thread_id }, request);
  } catch (cause) {
    if (!(cause instanceof ServiceError) || cause.code !== "checkpoint.not_found") throw cause;
    throw refused([{ at: "config.configurable.checkpoint_id", message: cause.message }], cause);
  }
  const draft = runDraftOf(cron.cron_id, request, assistant, { thread_id, metadata: {} }, from);
  // What the schemas return is not stored with the cron: its runs are parsed when they start.
  await engine.parseRun?.(draft, () => null);
  const refusal = engine.refuses(draft, null, cron.thread_id === null);
  if (refusal !== null) throw refused(refusal.fields ?? [], undefined, refusal.message);
}

function refused(fields: ServiceError["fields"], cause: unknown, message?: string): ServiceError {
  const text = message ?? fields.map((field) => `${field.at}: ${field.message}`).join("; ");
  return new ServiceError("validation.failed", text, { fields, cause });
}
