import { isSmallJson } from "../../codec/large-json.ts";
import { HEARTBEAT, type SseOutput } from "../../codec/sse.ts";
import { threadModes } from "../../model/run.ts";
import type { ThreadKey } from "../../model/thread.ts";
import { sseFormat, type StreamView, createView } from "../../stream/rendering.ts";
import { showsRunEnds, createThreadRenderer, threadSseFormat } from "../../stream/thread-stream-rendering.ts";
import type { RouteCall } from "../route-call.ts";
import type { RouteDeps } from "../deps.ts";
import type { Route } from "../router.ts";
import { pumpRendered, pumpSse, SSE_HEADERS, streamStartHeaders } from "../sse.ts";
import {
  threadlessRunPath,
  type StreamModeList,
  handleDisconnect,
  runPath,
  startThreadlessRun,
  startRun,
  type StartedRun,
} from "../start-run.ts";
import {
  lastEventIdInHeader,
  lastEventIdInQuery,
  checkpointIdOf,
  streamModesOf,
  namespacesOf,
  threadModesOf,
} from "../../schemas/stream-params.ts";

/** The stream modes and namespaces of a run's events that a client has requested. */
interface Wanted {
  readonly modes: StreamModeList;
  /** The namespaces whose events are sent; undefined: all namespaces that the run streams. */
  readonly namespaces: readonly string[] | undefined;
}

export function runStreamRoutes(deps: RouteDeps): readonly Route[] {
  const { scheduler, budget: time, streamMemory: budget, logger, traffic } = deps;
  const views = new Views();

  function answer(call: RouteCall, started: StartedRun, { modes, namespaces }: Wanted, after: number): void {
    const { key, run, path } = started;
    const headers = { "content-location": path, location: `${path}/stream`, ...SSE_HEADERS };
    if (call.isHead) return call.send(200, headers);
    // A request for the namespace of a subgraph also turns on the events of subgraphs.
    const subgraphs = run.kwargs.subgraphs || namespaces?.some((ns) => ns !== "") === true;
    const view =
      namespaces === undefined
        ? views.of(modes, subgraphs)
        : createView(modes, subgraphs, sseFormat, { namespaces });
    const reader = call.service.runs.follow(key, run, after);
    // The response starts with a comment line, so that the headers are sent at once.
    const stream = call.open(headers, HEARTBEAT);
    const memory = { budget, tenant: call.budgetOwner };
    const options = { view, scheduler, memory, time: time.share(call.budgetOwner), logger, traffic };
    handleDisconnect(deps, call, started, pumpSse(reader, stream, options));
  }

  async function join(call: RouteCall, key: ThreadKey, id: string, pathOf: typeof runPath): Promise<void> {
    const { query } = call;
    const checkpoint = checkpointIdOf(query);
    const namespaces = namespacesOf(query);
    const asked = streamModesOf(query);
    const cancelOnDisconnect = query.flag("cancel_on_disconnect") ?? false;
    const { runs } = call.service;
    await runs.keepForReading(key, async () => {
      const run = await runs.findForReading(key, id);
      // Reading a large input has used up the time for this turn of the event loop, so the request continues in a later turn.
      if (!isSmallJson(run.kwargs.input)) await deps.budget.share(key.tenant).next();
      const started = { key, run, path: pathOf(run), cancelOnDisconnect };
      let after = afterOf(call) ?? -1;
      if (after < 0 && checkpoint !== undefined) after = await runs.lastEventAt(key, run, checkpoint);
      answer(call, started, { modes: asked ?? run.kwargs.stream_mode, namespaces }, after);
    });
  }

  /**
   * Streams the events of all runs of a thread, including future runs. Event ids are numbers within the thread, not within a run. The
   * stream ends only when the client or the server closes it.
   */
  async function joinThread(call: RouteCall): Promise<void> {
    const key = call.thread();
    const modes = threadModesOf(call.query, threadModes);
    const reader = await call.service.runs.followThread(key, afterOf(call), showsRunEnds(modes));
    const location = `/threads/${key.thread}/stream`;
    const headers = { ...SSE_HEADERS, location, ...(deps.isForPeers && streamStartHeaders(reader)) };
    if (call.isHead || call.reply.aborted) {
      reader.close();
      return call.send(200, headers);
    }
    const memory = { budget, tenant: call.budgetOwner };
    const options = { scheduler, memory, time: time.share(call.budgetOwner), logger, traffic };
    const render = createThreadRenderer(reader, modes, threadSseFormat);
    const left = pumpRendered(reader, call.open(headers, HEARTBEAT), render, options);
    call.reply.onAbort(left);
  }

  return [
    {
      method: "GET",
      path: "/threads/:thread_id/stream",
      access: "users",
      handle: joinThread,
    },
    {
      method: "POST",
      path: "/threads/:thread_id/runs/stream",
      access: "users",
      async handle(call) {
        const namespaces = namespacesOf(call.query);
        const started = await startRun(deps, call);
        answer(call, started, { modes: started.run.kwargs.stream_mode, namespaces }, afterRepeat(call));
      },
    },
    {
      method: "POST",
      path: "/runs/stream",
      access: "users",
      async handle(call) {
        const namespaces = namespacesOf(call.query);
        const started = await startThreadlessRun(deps, call, true);
        answer(call, started, { modes: started.run.kwargs.stream_mode, namespaces }, afterRepeat(call));
      },
    },
    {
      method: "GET",
      path: "/threads/:thread_id/runs/:run_id/stream",
      access: "users",
      handle: (call) => join(call, call.thread(), call.run(), runPath),
    },
    {
      method: "GET",
      path: "/runs/:run_id/stream",
      access: "users",
      handle(call) {
        const { key, id } = call.threadlessRun();
        return join(call, key, id, threadlessRunPath);
      },
    },
  ];
}

/**
 * The number of the last event that the client has received: from the header `last-event-id`, which clients send when they reconnect, or
 * from the query, as for a WebSocket. Undefined if neither contains a number.
 */
function afterOf({ request, query }: RouteCall): number | undefined {
  const header = request.header("last-event-id");
  return header === undefined ? lastEventIdInQuery(query) : lastEventIdInHeader(header);
}

/**
 * The number of the event after which a stream begins, for a request that itself starts the run. Without an idempotency key it is -1: the
 * stream begins at the run's first event. With a key, the request may be a repetition, whose header `last-event-id` names the last event
 * that the client has received.
 */
function afterRepeat({ request }: RouteCall): number {
  const isKeyed = (request.header("idempotency-key") ?? "") !== "";
  return isKeyed ? lastEventIdInHeader(request.header("last-event-id")) : -1;
}

/** A cache of stream views by modes and subgraphs. Most requests share a view, and creating one costs more than the lookup. */
class Views {
  readonly #made = new Map<string, StreamView<SseOutput>>();

  of(modes: StreamModeList, subgraphs: boolean): StreamView<SseOutput> {
    const key = modes.length === 1 && !subgraphs ? (modes[0] as string) : `${modes.join()} ${subgraphs}`;
    let view = this.#made.get(key);
    if (view === undefined) {
      view = createView(modes, subgraphs, sseFormat);
      // The cache is limited, because a client can request any number of combinations of modes.
      if (this.#made.size < 256) this.#made.set(key, view);
    }
    return view;
  }
}
