import { isSmallJson } from "../../codec/large-json.ts";
import type { ThreadKey } from "../../model/thread.ts";
import { toPlainError, ServiceError, withCauses } from "../../model/errors.ts";
import type { ByteStream } from "../../ports/transport.ts";
import type { RouteCall } from "../route-call.ts";
import type { RouteDeps } from "../deps.ts";
import { JSON_HEADERS } from "../../schemas/error-to-response.ts";
import { JsonHeartbeat } from "../json-heartbeat.ts";
import type { Route } from "../router.ts";
import {
  threadlessRunPath,
  handleDisconnect,
  runPath,
  startThreadlessRun,
  startRun,
  type StartedRun,
} from "../start-run.ts";

/**
 * The delay after which the headers are sent if the run has not ended. The body then needs a second write, so the delay is long enough that
 * most runs end within it, even on a busy server.
 */
const HEADERS_DELAY_MS = 250;

const INTERNAL = new Error("Internal server error");

/** Whether an error needs no log line: the thread was deleted in the meantime, or the storage has failed, which is logged elsewhere. */
const isExpected = (cause: unknown): boolean =>
  cause instanceof ServiceError &&
  (cause.code === "thread.not_found" || cause.code === "storage.unavailable");

/** Whether a run goes on elsewhere because this process stops serving its thread. */
const isOfStop = (cause: unknown): boolean =>
  cause instanceof ServiceError && cause.code === "server.draining";

export function runWaitRoutes(deps: RouteDeps): readonly Route[] {
  const keepalive = new JsonHeartbeat(deps.scheduler);
  const { logger } = deps;

  /**
   * Responds with the run's result. If the run has not ended after {@link HEADERS_DELAY_MS}, the headers are sent before the body, because
   * some clients send no other request until they have received headers. Otherwise headers and body are sent in one write.
   */
  async function answer(call: RouteCall, starting: Promise<StartedRun> | StartedRun): Promise<void> {
    const started = starting instanceof Promise ? await starting : starting;
    const { key, run, path } = started;
    const headers = { "content-location": path, location: `${path}/join`, ...JSON_HEADERS };
    if (call.isHead) return call.send(200, headers);
    let stream: ByteStream | undefined;
    const open = deps.scheduler.after(HEADERS_DELAY_MS, () => {
      stream = call.open(headers, "\n");
      keepalive.add(stream);
    });
    const leave = () => {
      open();
      if (stream !== undefined) keepalive.remove(stream);
    };
    handleDisconnect(deps, call, started, leave);
    let text: string;
    try {
      const result = await call.service.runs.result(key, run);
      leave();
      if (!isSmallJson(result)) return await deps.sendJson(call, result, { headers, stream });
      text = JSON.stringify(result);
    } catch (cause) {
      if (stream === undefined) throw cause;
      // Another process continues the run. The client, or the process that forwarded its request, asks again.
      if (isOfStop(cause)) return stream.close();
      if (!isExpected(cause))
        logger.error("a run's result could not be read", { run: run.run_id, error: withCauses(cause) });
      // Errors other than a `ServiceError` may contain file names of this machine, so they are replaced.
      text = JSON.stringify({ __error__: toPlainError(cause instanceof ServiceError ? cause : INTERNAL) });
    } finally {
      leave();
    }
    if (stream !== undefined) stream.end(text);
    else if (!call.reply.aborted) call.send(200, headers, text);
  }

  async function join(call: RouteCall, key: ThreadKey, id: string, pathOf: typeof runPath): Promise<void> {
    const cancelOnDisconnect = call.query.flag("cancel_on_disconnect") ?? false;
    const { runs } = call.service;
    await runs.keepForReading(key, async () => {
      const run = await runs.findForReading(key, id);
      await answer(call, { key, run, path: pathOf(run), cancelOnDisconnect });
    });
  }

  return [
    {
      method: "POST",
      path: "/threads/:thread_id/runs/wait",
      access: "users",
      handle: (call) => answer(call, startRun(deps, call)),
    },
    {
      method: "POST",
      path: "/runs/wait",
      access: "users",
      handle: (call) => answer(call, startThreadlessRun(deps, call, true)),
    },
    {
      method: "GET",
      path: "/threads/:thread_id/runs/:run_id/join",
      access: "users",
      handle: (call) => join(call, call.thread(), call.run(), runPath),
    },
    {
      method: "GET",
      path: "/runs/:run_id/join",
      access: "users",
      handle(call) {
        const { key, id } = call.threadlessRun();
        return join(call, key, id, threadlessRunPath);
      },
    },
  ];
}
