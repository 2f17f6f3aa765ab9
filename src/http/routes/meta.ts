import type { HttpDeps } from "../deps.ts";
import type { Route } from "../router.ts";

export function metaRoutes({ version }: HttpDeps): readonly Route[] {
  const info = {
    version,
    context: "js",
    // What a client may show panels for.
    flags: { assistants: true, crons: false, langsmith: false, langsmith_tracing_replicas: false },
    host: {
      kind: "self-hosted",
      project_id: null,
      host_revision_id: null,
      revision_id: null,
      tenant_id: null,
    },
    metadata: {},
  };
  return [
    { method: "GET", path: "/ok", handle: (call) => call.json({ ok: true }) },
    { method: "GET", path: "/info", handle: (call) => call.json(info) },
  ];
}
