import { responseSchemas } from "../../schemas/record-schemas.ts";
import { Type } from "../../schemas/typebox.ts";
import { choiceParam, flagParam, limitParam, listParam, offsetParam, textParam } from "./query-params.ts";
import {
  type RouteDescriptions,
  jsonResponse,
  emptyResponse,
  recordResponse,
  recordListResponse,
} from "./route-description.ts";

const object = Type.Record(Type.String(), Type.Unknown());
const count = jsonResponse(Type.Integer({ minimum: 0 }), "How many there are");

/** OpenAPI descriptions of the routes of assistants, crons, the store and webhooks. */
export const resourceRouteDescriptions: RouteDescriptions = {
  "POST /assistants": {
    tag: "Assistants",
    summary: "Create an assistant: a graph with settings",
    body: "AssistantCreate",
    answer: recordResponse("Assistant"),
  },
  "POST /assistants/search": {
    tag: "Assistants",
    summary: "Find assistants",
    body: "AssistantSearch",
    answer: recordListResponse("SelectedAssistant"),
  },
  "POST /assistants/count": {
    tag: "Assistants",
    summary: "Count assistants",
    body: "AssistantCount",
    answer: count,
  },
  "GET /assistants/:assistant_id": {
    tag: "Assistants",
    summary: "Get an assistant, by its id or its graph's name",
    answer: recordResponse("Assistant"),
  },
  "PATCH /assistants/:assistant_id": {
    tag: "Assistants",
    summary: "Change an assistant: that makes a new version",
    body: "AssistantUpdate",
    answer: recordResponse("Assistant"),
  },
  "DELETE /assistants/:assistant_id": {
    tag: "Assistants",
    summary: "Delete an assistant",
    query: [flagParam("delete_threads", "Also the threads that it ran on")],
    answer: emptyResponse(),
  },
  "POST /assistants/:assistant_id/versions": {
    tag: "Assistants",
    summary: "List an assistant's versions",
    body: "AssistantVersions",
    answer: recordListResponse("AssistantVersion"),
  },
  "POST /assistants/:assistant_id/latest": {
    tag: "Assistants",
    summary: "Go back to a version",
    body: "AssistantLatest",
    answer: recordResponse("Assistant"),
  },
  "GET /assistants/:assistant_id/graph": {
    tag: "Assistants",
    summary: "Get the graph as nodes and edges",
    query: [textParam("xray", "true, or how many levels of subgraphs are drawn in their places")],
    answer: jsonResponse(Type.Object({ nodes: Type.Array(object), edges: Type.Array(object) })),
  },
  "GET /assistants/:assistant_id/schemas": {
    tag: "Assistants",
    summary: "Get what the graph takes, gives and keeps, as JSON Schema",
    answer: jsonResponse(object),
  },
  "GET /assistants/:assistant_id/subgraphs": {
    tag: "Assistants",
    summary: "Get the same of its subgraphs",
    query: [flagParam("recurse", "Also those of subgraphs")],
    answer: jsonResponse(object),
  },
  "GET /assistants/:assistant_id/subgraphs/:namespace": {
    tag: "Assistants",
    summary: "Get the same of one subgraph",
    query: [flagParam("recurse", "Also those below it")],
    answer: jsonResponse(object),
  },
  "POST /runs/crons": {
    tag: "Crons",
    summary: "Start a run by the clock, each time on a thread of its own",
    body: "CronCreate",
    answer: recordResponse("Cron"),
  },
  "POST /threads/:thread_id/runs/crons": {
    tag: "Crons",
    summary: "Start a run on a thread by the clock",
    body: "CronCreate",
    answer: recordResponse("Cron"),
  },
  "POST /runs/crons/search": {
    tag: "Crons",
    summary: "Find crons",
    body: "CronSearch",
    answer: recordListResponse("SelectedCron"),
  },
  "POST /runs/crons/count": { tag: "Crons", summary: "Count crons", body: "CronCount", answer: count },
  "POST /runs/crons/preview": {
    tag: "Crons",
    summary: "Get the next three times of a schedule, without a cron",
    more: "Heddle's own. A schedule that no cron could have is refused with 422. After `end_time` there are no times.",
    body: "CronPreview",
    answer: jsonResponse(
      Type.Object({ next_run_dates: Type.Array(Type.String({ format: "date-time" }), { maxItems: 3 }) }),
    ),
  },
  "GET /runs/crons/:cron_id": { tag: "Crons", summary: "Get a cron", answer: recordResponse("Cron") },
  "PATCH /runs/crons/:cron_id": {
    tag: "Crons",
    summary: "Change a cron",
    body: "CronUpdate",
    answer: recordResponse("Cron"),
  },
  "DELETE /runs/crons/:cron_id": { tag: "Crons", summary: "Delete a cron", answer: emptyResponse() },
  "PUT /store/items": { tag: "Store", summary: "Put an item", body: "ItemPut", answer: emptyResponse() },
  "GET /store/items": {
    tag: "Store",
    summary: "Get an item; null where there is none",
    query: [
      textParam("key", "Its key"),
      listParam("namespace", "Its labels, with periods between them"),
      flagParam("refresh_ttl", "Its time to live begins anew"),
    ],
    answer: jsonResponse(Type.Union([responseSchemas.StoreItem, Type.Null()])),
  },
  "DELETE /store/items": {
    tag: "Store",
    summary: "Delete an item",
    body: "ItemDelete",
    answer: emptyResponse(),
  },
  "POST /store/items/search": {
    tag: "Store",
    summary: "Find items, by prefix, filter or meaning",
    body: "ItemSearch",
    answer: jsonResponse(Type.Object({ items: Type.Array(object) })),
  },
  "POST /store/namespaces": {
    tag: "Store",
    summary: "List namespaces",
    body: "NamespaceList",
    answer: jsonResponse(Type.Object({ namespaces: Type.Array(Type.Array(Type.String())) })),
  },
  "GET /webhooks/deliveries": {
    tag: "Webhooks",
    summary: "List webhook deliveries: pending ones, and dead letters",
    query: [choiceParam("status", ["pending", "dead"], "Only these"), limitParam, offsetParam],
    answer: recordListResponse("Delivery"),
  },
  "POST /webhooks/deliveries/:delivery_id/retry": {
    tag: "Webhooks",
    summary: "Send a webhook again, now",
    answer: recordResponse("Delivery"),
  },
  "DELETE /webhooks/deliveries/:delivery_id": {
    tag: "Webhooks",
    summary: "Forget a webhook",
    answer: emptyResponse(),
  },
};
