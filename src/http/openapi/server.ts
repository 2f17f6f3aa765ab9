import { LIMITS } from "../../schemas/request-schemas.ts";
import { Type } from "../../schemas/typebox.ts";
import { choice, flag, text } from "./query-params.ts";
import { type Answer, type Descriptions, json, stream } from "./route-description.ts";

const object = Type.Record(Type.String(), Type.Unknown());
const ok = json(Type.Object({ ok: Type.Boolean() }));
const ready = json(
  Type.Object({
    ok: Type.Boolean(),
    damaged: Type.Optional(
      Type.Object({ threads: Type.Integer(), keys: Type.Integer(), ranges: Type.Integer() }),
    ),
    verifying: Type.Optional(Type.Object({ tables: Type.Integer(), bytes: Type.Integer() })),
  }),
);
const html: Answer = { kind: "text", type: "text/html" };
const file: Answer = { kind: "text", type: "text/javascript" };

/** Routes of the server itself, its pages and the inspector. */
export const server: Descriptions = {
  "GET /ok": {
    tag: "Server",
    summary: "Is it there?",
    query: [flag("check_db", "Also whether it can take work: the same as /ready")],
    answer: ready,
  },
  "GET /live": { tag: "Server", summary: "Is the process alive?", answer: ok },
  "GET /ready": {
    tag: "Server",
    summary:
      "Can it take work? 503 while it stops, or its storage fails. `damaged` counts what is not served since data was lost, `verifying` tables whose checksums are still to be verified behind the start",
    answer: ready,
  },
  "GET /info": { tag: "Server", summary: "Get the version and what is served", answer: json(object) },
  "GET /metrics": {
    tag: "Server",
    summary: "Get figures, in the text format of Prometheus",
    query: [choice("format", ["prometheus"], "The only one")],
    answer: { kind: "text", type: "text/plain" },
  },
  "GET /openapi.json": { tag: "Server", summary: "Get this description", answer: json(object) },
  "GET /docs": { tag: "Server", summary: "Read this description", answer: html },
  "GET /docs/:file": { tag: "Server", summary: "Get a part of that page", answer: file },
  "POST /auth/token": {
    tag: "Server",
    summary: "Get a short-lived token, for the WebSockets of a browser (?token=)",
    answer: json(Type.Object({ token: Type.String(), expires_at: Type.String({ format: "date-time" }) })),
  },
  "GET /": { tag: "Server", summary: "The dashboard, for browsers", answer: html },
  "GET /dashboard/:file": { tag: "Server", summary: "Get a part of that page", answer: file },
  "POST /ui/:agent": {
    tag: "Server",
    summary: "Get the HTML that loads a component of a graph's, named by itself or an assistant's id",
    body: "Component",
    answer: html,
  },
  "GET /ui/:agent/:file": { tag: "Server", summary: "Get a file of its components", answer: file },
  "GET /inspector": { tag: "Inspection", summary: "The page of live statecharts", answer: html },
  "GET /inspector/:file": { tag: "Inspection", summary: "Get a part of that page", answer: file },
  "GET /inspect/machines": {
    tag: "Inspection",
    summary: "List the statecharts that actors have",
    answer: json(object),
  },
  "GET /inspect/machines/:machine": {
    tag: "Inspection",
    summary: "Get one of them",
    answer: json(object),
  },
  "GET /inspect/actors": {
    tag: "Inspection",
    summary: "Get the tree of a thread's or a run's actors, or list the threads whose actors live",
    query: [
      text("thread_id", "Which thread"),
      text("run_id", "Which run"),
      {
        name: "limit",
        about: "How many threads at most",
        schema: Type.Integer({ minimum: LIMITS.least, maximum: LIMITS.most, default: 100 }),
      },
    ],
    answer: json(Type.Object({ actors: Type.Array(object) })),
  },
  "POST /threads/:thread_id/commands": {
    tag: "Protocol v2",
    summary: "Give a command: run.start, input.respond, state.get, ...",
    body: "Command",
    answer: json(object),
  },
  "POST /threads/:thread_id/stream/events": {
    tag: "Protocol v2",
    summary: "Follow a thread's events, by channel",
    body: "Subscription",
    answer: stream,
  },
  "POST /threads/:thread_id/stream": {
    tag: "Protocol v2",
    summary: "The same, under the name that the protocol's text has",
    body: "Subscription",
    answer: stream,
  },
};
