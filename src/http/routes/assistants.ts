import { parseUuid } from "../../model/ids.ts";
import type { AssistantQuery } from "../../ports/catalog.ts";
import { assistantOf } from "../../service/records.ts";
import type { HttpDeps } from "../deps.ts";
import { JSON_HEADERS } from "../errors.ts";
import type { Route } from "../router.ts";
import { assistantCreate, assistantSearch } from "../schemas.ts";
import { refuseUnserved } from "../unserved.ts";

export function assistantRoutes({ service: { assistants } }: HttpDeps): readonly Route[] {
  return [
    {
      method: "POST",
      path: "/assistants",
      async handle(call) {
        const { assistant_id, ...rest } = assistantCreate.parse(await call.body());
        const id = parseUuid(assistant_id);
        const asked = id === undefined ? rest : { ...rest, assistant_id: id };
        call.json(assistantOf(await assistants.create(call.tenant, asked)));
      },
    },
    {
      method: "GET",
      path: "/assistants/:assistant_id",
      async handle(call) {
        call.json(assistantOf(await assistants.get(call.tenant, call.param(0))));
      },
    },
    {
      method: "POST",
      path: "/assistants/search",
      async handle(call) {
        const body = await call.body();
        refuseUnserved(body, "search");
        const { limit = 10, offset = 0, select, ...filter } = assistantSearch.parse(body);
        const query: AssistantQuery = {
          limit,
          offset,
          ...(filter.graph_id !== undefined && { graph_id: filter.graph_id }),
          ...(filter.metadata !== undefined && { metadata: filter.metadata }),
        };
        const page = await assistants.search(call.tenant, query);
        const shown = page.assistants.map((assistant) => pick(assistantOf(assistant), select));
        call.json(shown, pageHeaders(offset + page.assistants.length, page.next));
      },
    },
  ];
}

/** The total is a lower bound: one more than shown so far where there is a next page. */
function pageHeaders(seen: number, next: number | undefined) {
  if (next === undefined) return { ...JSON_HEADERS, "x-pagination-total": String(seen) };
  return { ...JSON_HEADERS, "x-pagination-total": String(next + 1), "x-pagination-next": String(next) };
}

export function pick(
  record: { readonly [field: string]: unknown },
  fields: readonly string[] | undefined,
): { readonly [field: string]: unknown } {
  if (fields === undefined || fields.length === 0) return record;
  return Object.fromEntries(
    fields.filter((field) => Object.hasOwn(record, field)).map((f) => [f, record[f]]),
  );
}
