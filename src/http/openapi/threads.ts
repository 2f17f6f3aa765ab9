import { Type } from "../../schemas/typebox.ts";
import { flagParam, limitParam, listParam, textParam } from "./query-params.ts";
import {
  type RouteDescriptions,
  jsonAnswer,
  noAnswer,
  recordAnswer,
  recordListAnswer,
  streamAnswer,
} from "./route-description.ts";

const count = jsonAnswer(Type.Integer({ minimum: 0 }), "How many there are");
const object = Type.Record(Type.String(), Type.Unknown());
const tag = "Threads";
const state = "Thread state";
const fields = listParam(
  "select",
  "The fields that are wanted: the others are left out; values.<key> for one key of the values",
);
const subgraphs = flagParam("subgraphs", "With the states of subgraphs");
const ns = textParam("checkpoint_ns", "The subgraph whose state it is");

export const threadDescriptions: RouteDescriptions = {
  "POST /threads": { tag, summary: "Create a thread", body: "ThreadCreate", answer: recordAnswer("Thread") },
  "POST /threads/search": {
    tag,
    summary: "Find threads",
    more: "x-pagination-next tells where the next page begins, x-pagination-total how many there are: where there are many more than this page, it may say less, but more than this page. POST /threads/count is exact.",
    body: "ThreadSearch",
    answer: recordListAnswer("SelectedThread"),
  },
  "POST /threads/count": { tag, summary: "Count threads", body: "ThreadCount", answer: count },
  "POST /threads/prune": {
    tag,
    summary: "Delete threads, or all of their history but the latest state",
    body: "ThreadPrune",
    answer: jsonAnswer(Type.Object({ pruned_count: Type.Integer({ minimum: 0 }) })),
  },
  "GET /threads/:thread_id": {
    tag,
    summary: "Get a thread",
    query: [listParam("include", "ttl: when it is deleted")],
    answer: recordAnswer("Thread"),
  },
  "PATCH /threads/:thread_id": {
    tag,
    summary: "Change a thread's metadata or time to live",
    body: "ThreadUpdate",
    answer: recordAnswer("Thread"),
    instead: { 204: "With the header prefer: return=minimal" },
  },
  "DELETE /threads/:thread_id": {
    tag,
    summary: "Delete a thread with all that belongs to it",
    answer: noAnswer(),
  },
  "POST /threads/:thread_id/copy": {
    tag,
    summary: "Copy a thread with its history, without its runs",
    answer: recordAnswer("Thread"),
  },
  "GET /threads/:thread_id/stream": {
    tag,
    summary: "Follow the events of all runs of a thread",
    query: [textParam("last_event_id", "The last event that the client has; -1: from the start")],
    answer: streamAnswer,
  },
  "GET /threads/:thread_id/state": {
    tag: state,
    summary: "Get the latest state",
    query: [subgraphs, fields],
    answer: recordAnswer("SelectedThreadState"),
  },
  "GET /threads/:thread_id/state/:checkpoint_id": {
    tag: state,
    summary: "Get the state at a checkpoint",
    query: [ns, subgraphs, fields],
    answer: recordAnswer("SelectedThreadState"),
  },
  "POST /threads/:thread_id/state/checkpoint": {
    tag: state,
    summary: "Get the state at a checkpoint, also of a subgraph",
    body: "StateRead",
    answer: recordAnswer("SelectedThreadState"),
  },
  "POST /threads/:thread_id/state": {
    tag: state,
    summary: "Change the state, as a node would",
    body: "StateUpdate",
    answer: jsonAnswer(
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
    answer: jsonAnswer(Type.Array(object)),
  },
  "GET /threads/:thread_id/history": {
    tag: state,
    summary: "List earlier states, the newest first",
    query: [limitParam, textParam("before", "The id of a checkpoint: only older ones"), ns, fields],
    answer: recordListAnswer("SelectedThreadState"),
  },
  "POST /threads/:thread_id/history": {
    tag: state,
    summary: "List earlier states, the newest first, by more criteria",
    body: "HistoryRead",
    answer: recordListAnswer("SelectedThreadState"),
  },
};
