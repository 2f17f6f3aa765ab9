import { invalidField } from "../model/errors.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { RawBody } from "../schemas/read-body.ts";
import { parseRunRequest } from "../schemas/run-request.ts";
import { runCancelSchema, machineEventSchema } from "../schemas/request-schemas.ts";
import { checkCancelReason } from "../schemas/cancel-reason-check.ts";
import { withConfigurable } from "../service/run-draft.ts";
import type { AcceptedUpgrade, SocketHandlerDeps } from "./deps.ts";

/** Executes one command. Resolves when its change is stored, with the members of the command's acknowledgement. */
type Command = (body: RawBody) => Promise<JsonObject>;

/**
 * Creates the handler for the commands of a thread socket. Commands have the fields of the corresponding HTTP requests, and are validated
 * in the same way.
 */
export function createCommandHandler(
  { logger, requestLog }: Pick<SocketHandlerDeps, "logger" | "requestLog">,
  { service, configurable }: Pick<AcceptedUpgrade, "service" | "configurable">,
  key: ThreadKey,
): Command {
  const { threads, runs, events } = service;

  async function start(body: RawBody): Promise<JsonObject> {
    const { on_disconnect, ...request } = parseRunRequest(body, "socket");
    if (on_disconnect === "cancel") {
      throw invalidField("on_disconnect", "must be continue: a run started here outlives the socket");
    }
    const { run_id } = await runs.start(key, withConfigurable(request, configurable));
    return { run_id };
  }

  /**
   * Resumes an interrupted thread. A command that names no assistant uses the one that ran last on the thread, because that run raised the
   * interrupt. `isGiven`: whether the command has the field `resume`.
   */
  async function resume({ resume: answer, ...body }: RawBody, isGiven: boolean): Promise<JsonObject> {
    const command = isObject(body["command"]) ? body["command"] : {};
    if (!isGiven && !Object.hasOwn(command, "resume")) throw invalidField("resume", "is required");
    const { metadata } = await threads.record(key);
    const assistant = body["assistant_id"] ?? metadata["assistant_id"];
    if (assistant === undefined) {
      throw invalidField(
        "assistant_id",
        "is required: the thread has no run, so no interrupt waits for an answer",
      );
    }
    return start({
      ...body,
      assistant_id: assistant,
      command: isGiven ? { ...command, resume: answer ?? null } : command,
    });
  }

  async function send({ event }: RawBody): Promise<JsonObject> {
    if (!isObject(event)) throw invalidField("event", "must be a JSON object");
    const options = { configurable, origin: "socket" } as const;
    const { run_id } = await events.send(key, machineEventSchema.parse(event), options);
    return { run_id };
  }

  async function cancel(body: RawBody): Promise<JsonObject> {
    const { run_id, action = "interrupt", reason, wait = false } = runCancelSchema.parse(body);
    checkCancelReason(action, reason);
    const id = run_id?.toLowerCase() ?? (await inProgress());
    if (id !== null) await runs.cancel(key, id, action, { wait, ...(reason !== undefined && { reason }) });
    return { run_id: id };
  }

  /** The id of the running run, else of the next queued run; null if there is neither. */
  async function inProgress(): Promise<string | null> {
    const { active, queue } = await threads.record(key);
    return active ?? queue[0] ?? null;
  }

  return async (body) => {
    const { type } = body;
    logger[requestLog]("command", { thread: key.thread, type: String(type).slice(0, 40) });
    switch (type) {
      case "run":
        return start(body);
      case "resume":
        return resume(body, Object.hasOwn(body, "resume"));
      case "event":
        return send(body);
      case "cancel":
        return cancel(body);
      default:
        throw invalidField("type", "must be one of run, resume, event, cancel");
    }
  };
}
