import { PAGE_LIMITS } from "../../schemas/request-schemas.ts";
import { Type } from "../../schemas/typebox.ts";
import { choiceParam, flagParam, textParam } from "./query-params.ts";
import {
  type RouteResponse,
  type RouteDescriptions,
  jsonResponse,
  streamResponse,
} from "./route-description.ts";

const object = Type.Record(Type.String(), Type.Unknown());
const ok = jsonResponse(Type.Object({ ok: Type.Boolean() }));
const ready = jsonResponse(
  Type.Object({
    ok: Type.Boolean(),
    damaged: Type.Optional(
      Type.Object({
        threads: Type.Integer(),
        keys: Type.Integer(),
        ranges: Type.Integer(),
        findings: Type.Integer(),
      }),
    ),
    verifying: Type.Optional(Type.Object({ tables: Type.Integer(), bytes: Type.Integer() })),
  }),
);
const figures = {
  runs_running: Type.Integer(),
  runs_queued: Type.Integer(),
  actors_live: Type.Integer(),
  connections: Type.Integer(),
  memory_bytes: Type.Integer(),
  storage_bytes: Type.Union([Type.Integer(), Type.Null()]),
};
const info = Type.Object({
  version: Type.String(),
  langgraph_js_version: Type.Optional(Type.String()),
  context: Type.String(),
  flags: object,
  host: object,
  metadata: object,
  heddle: Type.Object({
    version: Type.String(),
    transport: Type.Object({ kind: Type.String(), why: Type.String() }),
    totals: Type.Optional(Type.Object(figures)),
    shards: Type.Optional(
      Type.Array(
        Type.Union([
          Type.Object({
            shard: Type.Integer(),
            up: Type.Literal(true),
            node: Type.Optional(Type.String()),
            pid: Type.Integer(),
            version: Type.String(),
            uptime_seconds: Type.Integer(),
            ...figures,
          }),
          Type.Object({ shard: Type.Integer(), up: Type.Literal(false) }),
        ]),
      ),
    ),
  }),
});
const whereabouts = Type.Object({
  ok: Type.Literal(true),
  version: Type.String(),
  docs: Type.String(),
  openapi: Type.String(),
  health: Type.String(),
});
const html: RouteResponse = { kind: "text", type: "text/html" };
const file: RouteResponse = { kind: "text", type: "text/javascript" };

/** OpenAPI descriptions of the routes of the server itself, its pages and the inspector. */
export const serverRouteDescriptions: RouteDescriptions = {
  "GET /ok": {
    tag: "Server",
    summary: "Is it there?",
    query: [flagParam("check_db", "Also whether it can take work: the same as /ready")],
    answer: ready,
  },
  "GET /live": { tag: "Server", summary: "Is the process alive?", answer: ok },
  "GET /ready": {
    tag: "Server",
    summary:
      "Can it take work? 503 while it stops, or its storage fails. `damaged` counts what is not served since data was lost, and the `findings` of damage that are not accepted; `verifying` tables whose checksums are still to be verified behind the start",
    answer: ready,
  },
  "GET /info": {
    tag: "Server",
    summary:
      "Get the version and what is served. Where the server has several processes, clients that may read `/metrics` also get `heddle.shards`, with the figures of each shard, and `heddle.totals`, their sums; `up` is false for a shard that does not answer",
    answer: jsonResponse(info),
  },
  "GET /metrics": {
    tag: "Server",
    summary:
      "Get figures, in the text format of Prometheus. Where the server has several processes, those of all of them, by `shard` and `node`",
    query: [choiceParam("format", ["prometheus"], "The only one")],
    answer: { kind: "text", type: "text/plain" },
  },
  "GET /metrics/history": {
    tag: "Server",
    summary:
      "Get figures of the last hour: a list for each, the oldest value first, null where one is not known. Where the server has several processes, those of all of them in one",
    answer: jsonResponse(
      Type.Object({
        interval_seconds: Type.Number(),
        times: Type.Array(Type.String({ format: "date-time" })),
        figures: Type.Record(Type.String(), Type.Array(Type.Union([Type.Number(), Type.Null()]))),
      }),
    ),
  },
  "GET /openapi.json": { tag: "Server", summary: "Get this description", answer: jsonResponse(object) },
  "GET /docs": { tag: "Server", summary: "Read the guide and this description", answer: html },
  "GET /docs/:file": { tag: "Server", summary: "Get a part of that page", answer: file },
  "POST /auth/token": {
    tag: "Server",
    summary: "Get a short-lived token, for the WebSockets of a browser (?token=)",
    answer: jsonResponse(
      Type.Object({ token: Type.String(), expires_at: Type.String({ format: "date-time" }) }),
    ),
  },
  "GET /": {
    tag: "Server",
    summary: "The dashboard, for browsers; for other programs, as JSON, where the documentation is",
    answer: { kind: "text", type: "text/html", json: whereabouts },
  },
  "GET /dashboard/:file": { tag: "Server", summary: "Get a part of that page", answer: file },
  "GET /dashboard/settings": {
    tag: "Server",
    summary:
      "Get the settings of that page: `prices`, dollars for a million tokens by model; `has_users`, whether rules decide what is shown; `tenant`, whose data is shown; `user`, who asks, null for an API key or without users",
    answer: jsonResponse(
      Type.Object({
        prices: Type.Record(Type.String(), Type.Object({ in: Type.Number(), out: Type.Number() })),
        has_users: Type.Boolean(),
        tenant: Type.String(),
        user: Type.Union([
          Type.Object({ identity: Type.String(), display_name: Type.String() }),
          Type.Null(),
        ]),
      }),
    ),
  },
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
    answer: jsonResponse(object),
  },
  "GET /inspect/machines/:machine": {
    tag: "Inspection",
    summary: "Get one of them",
    answer: jsonResponse(object),
  },
  "GET /inspect/actors": {
    tag: "Inspection",
    summary: "Get the tree of a thread's or a run's actors, or list the threads whose actors live",
    query: [
      textParam("thread_id", "Which thread"),
      textParam("run_id", "Which run"),
      {
        name: "limit",
        about: "How many threads at most",
        schema: Type.Integer({ minimum: PAGE_LIMITS.least, maximum: PAGE_LIMITS.most, default: 100 }),
      },
    ],
    answer: jsonResponse(Type.Object({ actors: Type.Array(object) })),
  },
  "POST /threads/:thread_id/commands": {
    tag: "Protocol v2",
    summary: "Give a command: run.start, input.respond, state.get, ...",
    body: "Command",
    answer: jsonResponse(object),
  },
  "POST /threads/:thread_id/stream/events": {
    tag: "Protocol v2",
    summary: "Follow a thread's events, by channel",
    body: "Subscription",
    answer: streamResponse,
  },
  "POST /threads/:thread_id/stream": {
    tag: "Protocol v2",
    summary: "The same, under the name that the protocol's text has",
    body: "Subscription",
    answer: streamResponse,
  },
};
