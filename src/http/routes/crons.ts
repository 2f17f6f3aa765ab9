import { apiCron } from "../../service/api-records.ts";
import {
  parseCronChange,
  cronCountSchema,
  cronFields,
  parseCronSearch,
  parseNewCron,
} from "../../schemas/cron-request.ts";
import type { CronFilter } from "../../model/cron.ts";
import { JSON_HEADERS } from "../../schemas/error-responses.ts";
import type { RouteDeps } from "../deps.ts";
import { mapItems, paginationHeaders, pickFields } from "../pagination.ts";
import type { Route } from "../router.ts";

const FIELDS: ReadonlySet<string> = new Set(cronFields);

export function cronRoutes({
  service: { crons },
  sendList,
  sendJson,
  readJson,
}: RouteDeps): readonly Route[] {
  return [
    {
      method: "POST",
      path: "/runs/crons",
      async handle(call) {
        const cron = await crons.create(call.tenant, parseNewCron(await call.body()));
        await sendJson(call, apiCron(cron));
      },
    },
    {
      method: "POST",
      path: "/threads/:thread_id/runs/crons",
      async handle(call) {
        const key = call.thread();
        const cron = await crons.createOn(key, parseNewCron(await call.body()));
        await sendJson(call, apiCron(cron));
      },
    },
    {
      method: "POST",
      path: "/runs/crons/search",
      async handle(call) {
        const { query, select } = parseCronSearch(await call.body());
        const { crons: found, total } = await crons.search(call.tenant, query);
        const fields = select.filter((field) => FIELDS.has(field));
        const shown = mapItems(found, (cron) => pickFields(apiCron(cron), fields));
        await sendList(call, shown, { headers: paginationHeaders(query.offset + query.limit, total) });
      },
    },
    {
      method: "POST",
      path: "/runs/crons/count",
      async handle(call) {
        call.json(await crons.count(call.tenant, cronCountSchema.parse(await call.body()) as CronFilter));
      },
    },
    {
      method: "GET",
      path: "/runs/crons/:cron_id",
      async handle(call) {
        const id = call.uuid(0, "cron_id");
        await readJson(call, async () => apiCron(await crons.get(call.tenant, id)));
      },
    },
    {
      method: "PATCH",
      path: "/runs/crons/:cron_id",
      async handle(call) {
        const id = call.uuid(0, "cron_id");
        const cron = await crons.update(call.tenant, id, parseCronChange(await call.body()));
        await sendJson(call, apiCron(cron));
      },
    },
    {
      method: "DELETE",
      path: "/runs/crons/:cron_id",
      async handle(call) {
        await crons.delete(call.tenant, call.uuid(0, "cron_id"));
        call.send(204, JSON_HEADERS);
      },
    },
  ];
}
