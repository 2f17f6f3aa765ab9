import { answers } from "../../schemas/record-schemas.ts";
import { Type } from "../../schemas/typebox.ts";
import { choice, flag, limit, list, offset, text } from "./query-params.ts";
import { type Descriptions, json, none, record, records } from "./route-description.ts";

const object = Type.Record(Type.String(), Type.Unknown());
const count = json(Type.Integer({ minimum: 0 }), "How many there are");

/** Routes of assistants, crons, the store and webhooks. */
export const keeping: Descriptions = {
  "POST /assistants": {
    tag: "Assistants",
    summary: "Create an assistant: a graph with settings",
    body: "AssistantCreate",
    answer: record("Assistant"),
  },
  "POST /assistants/search": {
    tag: "Assistants",
    summary: "Find assistants",
    body: "AssistantSearch",
    answer: records("SelectedAssistant"),
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
    answer: record("Assistant"),
  },
  "PATCH /assistants/:assistant_id": {
    tag: "Assistants",
    summary: "Change an assistant: that makes a new version",
    body: "AssistantUpdate",
    answer: record("Assistant"),
  },
  "DELETE /assistants/:assistant_id": {
    tag: "Assistants",
    summary: "Delete an assistant",
    query: [flag("delete_threads", "Also the threads that it ran on")],
    answer: none(),
  },
  "POST /assistants/:assistant_id/versions": {
    tag: "Assistants",
    summary: "List an assistant's versions",
    body: "AssistantVersions",
    answer: records("AssistantVersion"),
  },
  "POST /assistants/:assistant_id/latest": {
    tag: "Assistants",
    summary: "Go back to a version",
    body: "AssistantLatest",
    answer: record("Assistant"),
  },
  "GET /assistants/:assistant_id/graph": {
    tag: "Assistants",
    summary: "Get the graph as nodes and edges",
    query: [text("xray", "true, or how many levels of subgraphs are drawn in their places")],
    answer: json(Type.Object({ nodes: Type.Array(object), edges: Type.Array(object) })),
  },
  "GET /assistants/:assistant_id/schemas": {
    tag: "Assistants",
    summary: "Get what the graph takes, gives and keeps, as JSON Schema",
    answer: json(object),
  },
  "GET /assistants/:assistant_id/subgraphs": {
    tag: "Assistants",
    summary: "Get the same of its subgraphs",
    query: [flag("recurse", "Also those of subgraphs")],
    answer: json(object),
  },
  "GET /assistants/:assistant_id/subgraphs/:namespace": {
    tag: "Assistants",
    summary: "Get the same of one subgraph",
    query: [flag("recurse", "Also those below it")],
    answer: json(object),
  },
  "POST /runs/crons": {
    tag: "Crons",
    summary: "Start a run by the clock, each time on a thread of its own",
    body: "CronCreate",
    answer: record("Cron"),
  },
  "POST /threads/:thread_id/runs/crons": {
    tag: "Crons",
    summary: "Start a run on a thread by the clock",
    body: "CronCreate",
    answer: record("Cron"),
  },
  "POST /runs/crons/search": {
    tag: "Crons",
    summary: "Find crons",
    body: "CronSearch",
    answer: records("SelectedCron"),
  },
  "POST /runs/crons/count": { tag: "Crons", summary: "Count crons", body: "CronCount", answer: count },
  "GET /runs/crons/:cron_id": { tag: "Crons", summary: "Get a cron", answer: record("Cron") },
  "PATCH /runs/crons/:cron_id": {
    tag: "Crons",
    summary: "Change a cron",
    body: "CronUpdate",
    answer: record("Cron"),
  },
  "DELETE /runs/crons/:cron_id": { tag: "Crons", summary: "Delete a cron", answer: none() },
  "PUT /store/items": { tag: "Store", summary: "Put an item", body: "ItemPut", answer: none() },
  "GET /store/items": {
    tag: "Store",
    summary: "Get an item; null where there is none",
    query: [
      text("key", "Its key"),
      list("namespace", "Its labels, with periods between them"),
      flag("refresh_ttl", "Its time to live begins anew"),
    ],
    answer: json(Type.Union([answers.StoreItem, Type.Null()])),
  },
  "DELETE /store/items": { tag: "Store", summary: "Delete an item", body: "ItemDelete", answer: none() },
  "POST /store/items/search": {
    tag: "Store",
    summary: "Find items, by prefix, filter or meaning",
    body: "ItemSearch",
    answer: json(Type.Object({ items: Type.Array(object) })),
  },
  "POST /store/namespaces": {
    tag: "Store",
    summary: "List namespaces",
    body: "NamespaceList",
    answer: json(Type.Object({ namespaces: Type.Array(Type.Array(Type.String())) })),
  },
  "GET /webhooks/deliveries": {
    tag: "Webhooks",
    summary: "List webhooks that are owed or were given up",
    query: [choice("status", ["pending", "dead"], "Only these"), limit, offset],
    answer: records("Delivery"),
  },
  "POST /webhooks/deliveries/:delivery_id/retry": {
    tag: "Webhooks",
    summary: "Send a webhook again, now",
    answer: record("Delivery"),
  },
  "DELETE /webhooks/deliveries/:delivery_id": {
    tag: "Webhooks",
    summary: "Forget a webhook",
    answer: none(),
  },
};
