import { parseUuid } from "../../model/ids.ts";
import { assistantOf } from "../../service/records.ts";
import type { HttpDeps } from "../deps.ts";
import { pageHeaders, pick } from "../page.ts";
import type { Route } from "../router.ts";
import { dropNulls } from "../../wire/body.ts";
import { assistantCreate, assistantSearch } from "../../wire/schemas.ts";
import { refuseUnserved } from "../../wire/unserved.ts";

export function assistantRoutes({ service: { assistants } }: HttpDeps): readonly Route[] {
  return [
    {
      method: "POST",
      path: "/assistants",
      async handle(call) {
        const body = await call.body();
        dropNulls(body["config"]);
        refuseUnserved(body, "assistant");
        const { assistant_id, ...rest } = assistantCreate.parse(body);
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
        const { limit = 10, offset = 0, select, ...rest } = assistantSearch.parse(await call.body());
        const { assistants: found, total } = await assistants.search(call.tenant, { limit, offset, ...rest });
        const shown = found.map((assistant) => pick(assistantOf(assistant), select));
        call.json(shown, pageHeaders(offset + limit, total));
      },
    },
  ];
}
