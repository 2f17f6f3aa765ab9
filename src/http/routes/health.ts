import { invalidField } from "../../model/errors.ts";
import type { RouteDeps } from "../deps.ts";
import type { Route } from "../router.ts";

export function healthRoutes({
  about,
  ready,
  metrics,
  metricsHistory,
  shardStatus,
}: RouteDeps): readonly Route[] {
  const { version, transport, langGraphVersion } = about;
  const info = (shards = {}, langgraph = langGraphVersion?.()) => ({
    version,
    ...(langgraph !== undefined && { langgraph_js_version: langgraph }),
    context: "js",
    // Optional features that LangGraph clients check for, by LangGraph's names.
    flags: {
      assistants: true,
      crons: true,
      stream_namespaces: true,
      langsmith: false,
      langsmith_tracing_replicas: false,
    },
    host: {
      kind: "self-hosted",
      project_id: null,
      host_revision_id: null,
      revision_id: null,
      tenant_id: null,
    },
    metadata: {},
    heddle: { version, transport, ...shards },
  });
  const alive: Route["handle"] = (call) => call.json({ ok: true });
  const able: Route["handle"] = async (call) => {
    call.json({ ok: true, ...(await ready()) });
  };
  return [
    {
      method: "GET",
      path: "/ok",
      access: "public",
      handle: (call) => (call.query.flag("check_db") === true ? able : alive)(call),
    },
    { method: "GET", path: "/live", access: "public", handle: alive },
    { method: "GET", path: "/ready", access: "public", handle: able },
    {
      // Clients request `/info` before they have an API key. Without server access they do not get `shards`, whose metrics show the
      // activity of all tenants.
      method: "GET",
      path: "/info",
      access: "public",
      handle: (call) =>
        shardStatus !== undefined && call.hasServerAccess
          ? shardStatus().then((shards) => call.json(info(shards)))
          : call.json(info()),
    },
    {
      // Not public: the metrics show the activity of all tenants.
      method: "GET",
      path: "/metrics",
      async handle(call) {
        const format = call.query.text("format") ?? "prometheus";
        if (format !== "prometheus")
          throw invalidField("format", "must be prometheus: there is no other yet");
        const { type, body } = await metrics();
        call.send(200, { "content-type": type, "cache-control": "no-store" }, body);
      },
    },
    { method: "GET", path: "/metrics/history", handle: async (call) => call.json(await metricsHistory()) },
  ];
}
