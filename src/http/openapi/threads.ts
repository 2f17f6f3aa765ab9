import { threadModes } from "../../model/run.ts";
import { LIST_LIMIT_RANGE } from "../../schemas/request-schemas.ts";
import { Type } from "../../schemas/typebox.ts";
import { flagParam, limitParam, listParam, textParam } from "./query-params.ts";
import {
  type QueryParam,
  type RouteDescriptions,
  jsonResponse,
  emptyResponse,
  recordResponse,
  recordListResponse,
  streamResponse,
} from "./route-description.ts";

const count = jsonResponse(Type.Integer({ minimum: 0 }), "How many there are");
const object = Type.Record(Type.String(), Type.Unknown());
const tag = "Threads";
const state = "Thread state";
const fields = listParam(
  "select",
  "The fields that are wanted: the others are left out; values.<key> for one key of the values",
);
const subgraphs = flagParam("subgraphs", "With the states of subgraphs");
const listLimit: QueryParam = {
  name: "list_limit",
  about:
    "Of each list in the values that is longer, only its last elements, so many; `list_lengths` has the whole lengths of these lists, by name",
  schema: Type.Integer({ minimum: LIST_LIMIT_RANGE.least, maximum: LIST_LIMIT_RANGE.most }),
};
const ns = textParam("checkpoint_ns", "The subgraph whose state it is");

export const threadRouteDescriptions: RouteDescriptions = {
  "POST /threads": {
    tag,
    summary: "Create a thread",
    body: "ThreadCreate",
    answer: recordResponse("Thread"),
  },
  "POST /threads/search": {
    tag,
    summary: "Find threads",
    more: "x-pagination-next tells where the next page begins, x-pagination-total how many there are: where there are many more than this page, it may say less, but more than this page. POST /threads/count is exact.",
    body: "ThreadSearch",
    answer: recordListResponse("SelectedThread"),
  },
  "POST /threads/count": { tag, summary: "Count threads", body: "ThreadCount", answer: count },
  "POST /threads/prune": {
    tag,
    summary: "Delete threads, or all of their history but the latest state",
    body: "ThreadPrune",
    answer: jsonResponse(Type.Object({ pruned_count: Type.Integer({ minimum: 0 }) })),
  },
  "GET /threads/:thread_id": {
    tag,
    summary: "Get a thread",
    query: [listParam("include", "ttl: when it is deleted")],
    answer: recordResponse("Thread"),
  },
  "PATCH /threads/:thread_id": {
    tag,
    summary: "Change a thread's metadata or time to live",
    body: "ThreadUpdate",
    answer: recordResponse("Thread"),
    instead: { 204: "With the header prefer: return=minimal" },
  },
  "DELETE /threads/:thread_id": {
    tag,
    summary: "Delete a thread with all that belongs to it",
    answer: emptyResponse(),
  },
  "GET /threads/:thread_id/storage": {
    tag,
    summary: "Get the rows and bytes that a thread has stored",
    answer: recordResponse("StoredSizes"),
  },
  "POST /threads/:thread_id/copy": {
    tag,
    summary: "Copy a thread with its history, without its runs",
    answer: recordResponse("Thread"),
  },
  "GET /threads/:thread_id/stream": {
    tag,
    summary: "Follow the events of all runs of a thread",
    query: [
      textParam("last_event_id", "The last event that the client has; -1: from the start"),
      {
        name: "stream_mode",
        about:
          "run_modes (default): the events of each run in its own modes, and its end (run_done); lifecycle: only starts and ends; state_update: the state whenever it changes. Repeated, with commas, or as a JSON array; also named stream_modes",
        schema: Type.Array(Type.Enum(threadModes)),
      },
    ],
    answer: streamResponse,
  },
  "GET /threads/:thread_id/state": {
    tag: state,
    summary: "Get the latest state",
    query: [subgraphs, fields, listLimit],
    answer: recordResponse("SelectedThreadState"),
  },
  "GET /threads/:thread_id/state/:checkpoint_id": {
    tag: state,
    summary: "Get the state at a checkpoint",
    query: [ns, subgraphs, fields, listLimit],
    answer: recordResponse("SelectedThreadState"),
  },
  "POST /threads/:thread_id/state/checkpoint": {
    tag: state,
    summary: "Get the state at a checkpoint, also of a subgraph",
    body: "StateRead",
    answer: recordResponse("SelectedThreadState"),
  },
  "POST /threads/:thread_id/state": {
    tag: state,
    summary: "Change the state, as a node would",
    body: "StateUpdate",
    answer: jsonResponse(
      Type.Object({
        checkpoint: object,
        configurable: object,
        checkpoint_id: Type.String({ format: "uuid" }),
      }),
      "The new checkpoint",
    ),
  },
  "GET /threads/:thread_id/interrupts": {
    tag: state,
    summary: "List the questions that wait for an answer, with what each takes for one",
    answer: jsonResponse(Type.Array(object)),
  },
  "GET /threads/:thread_id/events/possible": {
    tag: state,
    summary: "List the events that the thread's machine can take now",
    more: "`schema` is the JSON Schema of the whole event, with its data where the machine declares a schema for them.",
    answer: jsonResponse(
      Type.Object({
        events: Type.Array(Type.Object({ type: Type.String(), schema: Type.Union([object, Type.Null()]) })),
        state: Type.Unknown(),
        interrupt_id: Type.Union([Type.String(), Type.Null()]),
      }),
    ),
  },
  "POST /threads/:thread_id/events": {
    tag: state,
    summary: "Send an event to the thread's machine",
    more: "A run takes it, after those before it; or the run in progress, while an actor of the machine works in a state that handles it. Data that do not match the schema that the machine declares for the event are refused with 422. The header idempotency-key makes the same request start one run, however often it is sent.",
    query: [textParam("metadata", "A JSON object: metadata of the run")],
    body: "MachineEvent",
    answer: jsonResponse(
      Type.Object({
        run_id: Type.String({ format: "uuid" }),
        thread_id: Type.String({ format: "uuid" }),
        status: Type.Literal("pending"),
      }),
      "It is stored",
      202,
    ),
  },
  "GET /threads/:thread_id/history": {
    tag: state,
    summary: "List earlier states, the newest first",
    query: [limitParam, textParam("before", "The id of a checkpoint: only older ones"), ns, fields],
    answer: recordListResponse("SelectedThreadState"),
  },
  "POST /threads/:thread_id/history": {
    tag: state,
    summary: "List earlier states, the newest first, by more criteria",
    body: "HistoryRead",
    answer: recordListResponse("SelectedThreadState"),
  },
};
