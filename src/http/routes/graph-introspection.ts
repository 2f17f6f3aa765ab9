import { invalidField } from "../../model/errors.ts";
import type { SubgraphQuery } from "../../service/graph-introspection.ts";
import type { RouteCall } from "../route-call.ts";
import type { Route } from "../router.ts";

/** Routes for the drawings and JSON schemas of an assistant's graph. */
export function graphIntrospectionRoutes(): readonly Route[] {
  async function subgraphs(call: RouteCall, ns: string | undefined): Promise<void> {
    const recurse = call.query.flag("recurse") ?? false;
    const query: SubgraphQuery = ns === undefined ? { recurse } : { ns, recurse };
    call.json(await call.service.drawings.subgraphs(call.tenant, call.param(0), query));
  }

  return [
    {
      method: "GET",
      path: "/assistants/:assistant_id/graph",
      access: "users",
      async handle(call) {
        const levels = levelsOf(call.query.text("xray"));
        call.json(await call.service.drawings.drawing(call.tenant, call.param(0), levels));
      },
    },
    {
      method: "GET",
      path: "/assistants/:assistant_id/schemas",
      access: "users",
      async handle(call) {
        call.json(await call.service.drawings.schemas(call.tenant, call.param(0)));
      },
    },
    {
      method: "GET",
      path: "/assistants/:assistant_id/subgraphs",
      access: "users",
      handle: (call) => subgraphs(call, undefined),
    },
    {
      method: "GET",
      path: "/assistants/:assistant_id/subgraphs/:namespace",
      access: "users",
      handle: (call) => subgraphs(call, call.param(1)),
    },
  ];
}

/** Reads the parameter `xray`: how many levels of subgraphs are drawn. 0: none; Infinity: all. */
function levelsOf(xray: string | undefined): number {
  switch (xray?.toLowerCase()) {
    case undefined:
    case "":
    case "false":
    case "no":
      return 0;
    case "true":
    case "yes":
      return Number.POSITIVE_INFINITY;
    default:
      if (/^\d{1,3}$/.test(xray ?? "")) return Number(xray);
      throw invalidField("xray", "must be true, false or a whole number from 0 to 999");
  }
}
