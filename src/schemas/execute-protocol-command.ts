import { ServiceError, invalidField } from "../model/errors.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { RunOrigin } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { RunRequestWithoutAssistant, ThreadProtocol } from "../service/thread-protocol.ts";
import { type RunRequest, withConfigurable } from "../service/run-draft.ts";
import { dropNulls, type RawBody } from "./read-body.ts";
import { failureDetailsOf } from "./error-to-response.ts";
import {
  inputRespondSchema,
  protocolStateGetSchema,
  listCheckpointsParamsSchema,
} from "./protocol-schemas.ts";
import { parseRunRequest } from "./run-request.ts";

/** A command of the thread-centric protocol (version 2). Its parameters are not checked yet. */
export interface ProtocolCommand {
  readonly id: number;
  readonly method: string;
  readonly params: RawBody;
}

/** Parses a command without checking its parameters. @throws ServiceError `validation.failed` if `id`, `method` or `params` is invalid */
export function parseCommand({ id, method, params = {} }: RawBody): ProtocolCommand {
  if (typeof id !== "number" || !Number.isSafeInteger(id) || id < 0) {
    throw invalidField("id", "must be a whole number, at least 0");
  }
  if (typeof method !== "string") throw invalidField("method", "must be a string");
  if (!isObject(params)) throw invalidField("params", "must be an object");
  dropNulls(params);
  return { id, method, params: params as RawBody };
}

/**
 * Stream settings of every run that the protocol starts. They replace the client's settings, because other clients may read the events of
 * these runs too.
 */
const STREAM_SETTINGS = {
  stream_mode: ["values", "updates", "messages-tuple", "custom", "tasks", "tools"],
  stream_subgraphs: true,
  stream_resumable: true,
};

/**
 * Executes a command, and resolves with its result. `configurable`: values that are added to `configurable` of a run that the command
 * starts.
 * @throws ServiceError `unsupported` for an unknown command; otherwise the errors of the service
 */
export async function executeCommand(
  protocol: ThreadProtocol,
  key: ThreadKey,
  { method, params }: ProtocolCommand,
  configurable?: JsonObject,
  origin?: RunOrigin,
): Promise<JsonObject> {
  switch (method) {
    case "run.start": {
      const { run_id } = await protocol.start(key, withConfigurable(requestOf(params, origin), configurable));
      return { run_id };
    }
    case "input.respond": {
      const { run_id } = await protocol.respond(
        key,
        answersOf(params),
        withConfigurable(answering(params, origin), configurable),
      );
      return { run_id };
    }
    case "state.fork": {
      const { checkpoint_id } = params;
      if (checkpoint_id === undefined) throw invalidField("params.checkpoint_id", "is required");
      const { run_id, thread_id } = await protocol.fork(
        key,
        withConfigurable(answering(params, origin), configurable),
      );
      return { run_id, thread_id };
    }
    case "state.get": {
      const { namespace = [], keys } = protocolStateGetSchema.parse(params);
      return protocol.state(key, namespace.join("|"), keys);
    }
    case "state.listCheckpoints": {
      const { namespace = [], limit = 10, before } = listCheckpointsParamsSchema.parse(params);
      const query = { ns: namespace.join("|"), limit, ...(before !== undefined && { before }) };
      return { checkpoints: await protocol.checkpoints(key, query) };
    }
    case "agent.getTree":
      return { tree: await protocol.tree(key) };
    default:
      throw new ServiceError("unsupported", `There is no command "${method.slice(0, 100)}" here`);
  }
}

/** Parses the run request in a command. @throws ServiceError `validation.failed` */
function requestOf({ multitaskStrategy, ...params }: RawBody, origin?: RunOrigin): RunRequest {
  const multitask_strategy = params["multitask_strategy"] ?? multitaskStrategy ?? "enqueue";
  return parseRunRequest({ ...params, ...STREAM_SETTINGS, multitask_strategy }, origin);
}

/**
 * Parses the run request in a command that answers an interrupt or starts a run from an earlier checkpoint. Such a request names no
 * assistant, because the run uses the assistant of the thread's last run.
 * @throws ServiceError `validation.failed`
 */
function answering(
  { input, config, metadata, update, goto, checkpoint_id }: RawBody,
  origin?: RunOrigin,
): RunRequestWithoutAssistant {
  const command = { ...(update !== undefined && { update }), ...(goto !== undefined && { goto }) };
  const isMore = Object.keys(command).length > 0;
  const given = { input, config, metadata, checkpoint_id, ...(isMore && { command }) };
  const { assistant_id: _, ...request } = requestOf({ ...given, assistant_id: "" }, origin);
  return request;
}

function answersOf(params: RawBody): readonly { readonly interrupt: string; readonly response: unknown }[] {
  const { responses, interrupt_id } = inputRespondSchema.parse(params);
  const entries =
    responses ?? (interrupt_id === undefined ? [] : [{ interrupt_id, response: params["response"] }]);
  if (entries.length === 0) throw invalidField("params.interrupt_id", "is required");
  return entries.map(({ interrupt_id: interrupt, response }) => ({ interrupt, response: response ?? null }));
}

export const successAnswer = (
  id: number,
  result: JsonObject,
  thread: string,
  position: number,
): JsonObject => ({
  type: "success",
  id,
  result,
  meta: { thread_id: thread, applied_through_seq: position },
});

export function errorAnswer(id: number | null, cause: unknown): JsonObject {
  const { body } = failureDetailsOf(cause);
  return { type: "error", id, error: codeOf(cause), message: body.detail };
}

function codeOf(cause: unknown): string {
  if (!(cause instanceof ServiceError)) return "unknown_error";
  switch (cause.code) {
    case "unsupported":
      return "unknown_command";
    case "run.not_found":
      return "no_such_run";
    case "resume.invalid":
    case "resume.conflict":
      return "no_such_interrupt";
    case "checkpoint.not_found":
      return "no_such_checkpoint";
    case "auth.required":
    case "auth.forbidden":
    case "auth.refused":
      return "permission_denied";
    default:
      return failureDetailsOf(cause).status < 500 ? "invalid_argument" : "unknown_error";
  }
}
