import { cancelActions } from "../../schemas/request-schemas.ts";
import { Type } from "../../schemas/typebox.ts";
import { streamModes } from "../../model/run.ts";
import { choiceParam, flagParam, limitParam, listParam, offsetParam, textParam } from "./query-params.ts";
import {
  type RouteDescriptions,
  jsonResponse,
  emptyResponse,
  type QueryParam,
  recordResponse,
  recordListResponse,
  streamResponse,
} from "./route-description.ts";

const tag = "Runs";
const alone = "Runs without a thread";
const outcome = jsonResponse(
  Type.Record(Type.String(), Type.Unknown()),
  "The state at the run's end; __interrupt__ holds what it asks, __error__ why it failed",
);
const action = choiceParam("action", cancelActions, "rollback: also take back what the run did");
const wait = flagParam("wait", "Answer once it has ended");
const leaves = flagParam("cancel_on_disconnect", "Cancel the run when this client goes away");
const since: readonly QueryParam[] = [
  textParam(
    "last_event_id",
    "The last event that the client has; -1: from the start. The header Last-Event-ID wins",
  ),
  {
    name: "stream_mode",
    about: "Only events of these modes; repeated, with commas, or as a JSON array",
    schema: Type.Array(Type.Enum(streamModes)),
  },
  listParam("namespace", "Only events of these subgraphs"),
  leaves,
];
const again = "The header idempotency-key makes the same request start one run, however often it is sent.";
const within = [listParam("namespace", "Only events of these subgraphs")];

export const runRouteDescriptions: RouteDescriptions = {
  "POST /threads/:thread_id/runs": {
    tag,
    summary: "Start a run in the background",
    more: again,
    body: "RunCreate",
    answer: recordResponse("Run"),
  },
  "POST /threads/:thread_id/runs/wait": {
    tag,
    summary: "Start a run and wait for its outcome",
    more: again,
    body: "RunCreate",
    answer: outcome,
  },
  "POST /threads/:thread_id/runs/stream": {
    tag,
    summary: "Start a run and follow its events",
    more: again,
    query: within,
    body: "RunCreate",
    answer: streamResponse,
  },
  "GET /threads/:thread_id/runs": {
    tag,
    summary: "List a thread's runs, the newest first",
    query: [
      limitParam,
      offsetParam,
      choiceParam(
        "status",
        ["pending", "running", "success", "error", "timeout", "interrupted"],
        "Only these",
      ),
      textParam("metadata", "A JSON object: only runs with these members"),
      listParam("select", "The fields that are wanted"),
    ],
    answer: recordListResponse("SelectedRun"),
  },
  "POST /runs/search": {
    tag,
    summary: "Find runs of all threads",
    more: "Newest first, without what they were created with. Runs without a thread are left out. x-pagination-next is the cursor of the next page, if there is one: with it, new runs do not move the pages.",
    body: "RunSearch",
    answer: recordListResponse("FoundRun"),
  },
  "GET /threads/:thread_id/runs/:run_id": { tag, summary: "Get a run", answer: recordResponse("Run") },
  "GET /threads/:thread_id/runs/:run_id/join": {
    tag,
    summary: "Wait for a run's outcome",
    query: [leaves],
    answer: outcome,
  },
  "GET /threads/:thread_id/runs/:run_id/stream": {
    tag,
    summary: "Follow a run's events, from the start or after one that the client has",
    query: since,
    answer: streamResponse,
  },
  "POST /threads/:thread_id/runs/:run_id/cancel": {
    tag,
    summary: "Cancel a run",
    query: [action, wait, textParam("reason", "Kept with the run")],
    answer: emptyResponse(202),
    instead: { 204: "With wait: it has ended" },
  },
  "POST /threads/:thread_id/runs/cancel": {
    tag,
    summary: "Cancel the runs of a thread",
    query: [
      action,
      wait,
      choiceParam("status", ["pending", "running", "all"], "Which of them"),
      textParam("reason", "Kept with the runs"),
    ],
    answer: emptyResponse(202),
    instead: { 204: "With wait: it has ended" },
  },
  "POST /runs/cancel": {
    tag,
    summary: "Cancel some runs of a thread, or runs of all threads by status",
    query: [action],
    body: "RunsCancel",
    answer: emptyResponse(),
  },
  "DELETE /threads/:thread_id/runs/:run_id": {
    tag,
    summary: "Delete a run that has ended, with the checkpoints that it made",
    answer: emptyResponse(),
  },
  "POST /runs": {
    tag: alone,
    summary: "Start a run in the background, whose thread goes with it",
    more: again,
    body: "RunCreate",
    answer: recordResponse("Run"),
  },
  "POST /runs/wait": {
    tag: alone,
    summary: "Start a run without a thread and wait for its outcome",
    more: again,
    body: "RunCreate",
    answer: outcome,
  },
  "POST /runs/stream": {
    tag: alone,
    summary: "Start a run without a thread and follow its events",
    more: again,
    query: within,
    body: "RunCreate",
    answer: streamResponse,
  },
  "POST /runs/batch": {
    tag: alone,
    summary: "Start several runs",
    body: "RunCreate",
    many: true,
    answer: recordListResponse("Run"),
  },
  "GET /runs/:run_id/join": {
    tag: alone,
    summary: "Wait for a run's outcome",
    query: [leaves],
    answer: outcome,
  },
  "GET /runs/:run_id/stream": {
    tag: alone,
    summary: "Follow a run's events",
    query: since,
    answer: streamResponse,
  },
};
