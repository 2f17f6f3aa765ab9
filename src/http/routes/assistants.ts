import { parseUuid } from "../../model/ids.ts";
import { apiAssistant, apiAssistantVersion } from "../../service/api-records.ts";
import type { RouteCall } from "../route-call.ts";
import type { RouteDeps } from "../deps.ts";
import { mapIterable, paginationHeaders, pickFields } from "../search-results.ts";
import type { Route } from "../router.ts";
import { dropNulls, type RawBody } from "../../schemas/read-body.ts";
import { JSON_HEADERS } from "../../schemas/error-to-response.ts";
import {
  assistantCountSchema,
  assistantCreateSchema,
  assistantLatestSchema,
  assistantSearchSchema,
  assistantUpdateSchema,
  assistantVersionsSchema,
} from "../../schemas/request-schemas.ts";
import { refuseCheckpointSettings } from "../../schemas/assistant-config-check.ts";

export function assistantRoutes({ sendList, sendJson, sendStored }: RouteDeps): readonly Route[] {
  /** Reads a request body with an assistant's settings. Refuses settings that name a checkpoint. */
  async function parts(call: RouteCall): Promise<RawBody> {
    const body = await call.body();
    dropNulls(body["config"]);
    refuseCheckpointSettings(body);
    return body;
  }

  return [
    {
      method: "POST",
      path: "/assistants",
      access: "users",
      async handle(call) {
        const { assistant_id, ...rest } = assistantCreateSchema.parse(await parts(call));
        const id = parseUuid(assistant_id);
        const asked = id === undefined ? rest : { ...rest, assistant_id: id };
        const assistant = await call.service.assistants.create(call.tenant, asked);
        await sendJson(call, apiAssistant(assistant));
      },
    },
    {
      method: "GET",
      path: "/assistants/:assistant_id",
      access: "users",
      async handle(call) {
        await sendStored(call, async () =>
          apiAssistant(await call.service.assistants.get(call.tenant, call.param(0))),
        );
      },
    },
    {
      method: "PATCH",
      path: "/assistants/:assistant_id",
      access: "users",
      async handle(call) {
        const asked = assistantUpdateSchema.parse(await parts(call));
        const assistant = await call.service.assistants.update(call.tenant, call.param(0), asked);
        await sendJson(call, apiAssistant(assistant));
      },
    },
    {
      method: "DELETE",
      path: "/assistants/:assistant_id",
      access: "users",
      async handle(call) {
        const withThreads = call.query.flag("delete_threads") ?? false;
        const { assistants, threads } = call.service;
        const { assistant_id } = await assistants.get(call.tenant, call.param(0));
        // Deletes the threads first. If that fails partway, the assistant still exists, and the request can be repeated.
        if (withThreads) await threads.removeOf(call.tenant, assistant_id);
        await assistants.delete(call.tenant, assistant_id);
        call.send(204, JSON_HEADERS);
      },
    },
    {
      method: "POST",
      path: "/assistants/search",
      access: "users",
      async handle(call) {
        const { limit = 10, offset = 0, select, ...rest } = assistantSearchSchema.parse(await call.body());
        const { assistants: found, total } = await call.service.assistants.search(call.tenant, {
          limit,
          offset,
          ...rest,
        });
        const shown = mapIterable(found, (assistant) => pickFields(apiAssistant(assistant), select));
        await sendList(call, shown, { headers: paginationHeaders(offset + limit, total) });
      },
    },
    {
      method: "POST",
      path: "/assistants/count",
      access: "users",
      async handle(call) {
        call.json(
          await call.service.assistants.count(call.tenant, assistantCountSchema.parse(await call.body())),
        );
      },
    },
    {
      method: "POST",
      path: "/assistants/:assistant_id/versions",
      access: "users",
      async handle(call) {
        const { limit = 10, offset = 0, ...rest } = assistantVersionsSchema.parse(await call.body());
        const query = { limit, offset, ...rest };
        await sendList(
          call,
          mapIterable(
            await call.service.assistants.versions(call.tenant, call.param(0), query),
            apiAssistantVersion,
          ),
        );
      },
    },
    {
      method: "POST",
      path: "/assistants/:assistant_id/latest",
      access: "users",
      async handle(call) {
        const { version } = assistantLatestSchema.parse(await call.body());
        const assistant = await call.service.assistants.setLatest(call.tenant, call.param(0), version);
        await sendJson(call, apiAssistant(assistant));
      },
    },
  ];
}
