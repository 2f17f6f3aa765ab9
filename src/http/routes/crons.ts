import { toIso } from "../../model/time.ts";
import { nextSlots } from "../../service/crons/cron-schedule.ts";
import { apiCron } from "../../service/api-records.ts";
import {
  parseCronChange,
  selectableCronFields,
  parseCronCount,
  parseCronPreview,
  parseCronSearch,
  parseNewCron,
} from "../../schemas/cron-request.ts";
import { JSON_HEADERS } from "../../schemas/error-to-response.ts";
import type { RouteDeps } from "../deps.ts";
import { mapIterable, paginationHeaders, pickFields } from "../search-results.ts";
import type { Route } from "../router.ts";

const FIELDS: ReadonlySet<string> = new Set(selectableCronFields);

/** The number of times that a preview of a schedule shows. */
const PREVIEW_COUNT = 3;

export function cronRoutes({ clock, sendList, sendJson, sendStored }: RouteDeps): readonly Route[] {
  return [
    {
      method: "POST",
      path: "/runs/crons",
      access: "users",
      async handle(call) {
        const cron = await call.service.crons.create(call.tenant, parseNewCron(await call.body()));
        await sendJson(call, apiCron(cron));
      },
    },
    {
      method: "POST",
      path: "/threads/:thread_id/runs/crons",
      access: "users",
      async handle(call) {
        const key = call.thread();
        const cron = await call.service.crons.createOn(key, parseNewCron(await call.body()));
        await sendJson(call, apiCron(cron));
      },
    },
    {
      method: "POST",
      path: "/runs/crons/search",
      access: "users",
      async handle(call) {
        const { query, select } = parseCronSearch(await call.body());
        const { crons: found, total } = await call.service.crons.search(call.tenant, query);
        const fields = select.filter((field) => FIELDS.has(field));
        const shown = mapIterable(found, (cron) => pickFields(apiCron(cron), fields));
        await sendList(call, shown, { headers: paginationHeaders(query.offset + query.limit, total) });
      },
    },
    {
      method: "POST",
      path: "/runs/crons/count",
      access: "users",
      async handle(call) {
        call.json(await call.service.crons.count(call.tenant, parseCronCount(await call.body())));
      },
    },
    {
      method: "POST",
      path: "/runs/crons/preview",
      access: "users",
      async handle(call) {
        const { end, ...schedule } = parseCronPreview(await call.body());
        const slots = nextSlots(schedule, { after: clock.now(), end, count: PREVIEW_COUNT });
        call.json({ next_run_dates: slots.map(toIso) });
      },
    },
    {
      method: "GET",
      path: "/runs/crons/:cron_id",
      access: "users",
      async handle(call) {
        const id = call.uuid(0, "cron_id");
        await sendStored(call, async () => apiCron(await call.service.crons.get(call.tenant, id)));
      },
    },
    {
      method: "PATCH",
      path: "/runs/crons/:cron_id",
      access: "users",
      async handle(call) {
        const id = call.uuid(0, "cron_id");
        const cron = await call.service.crons.update(call.tenant, id, parseCronChange(await call.body()));
        await sendJson(call, apiCron(cron));
      },
    },
    {
      method: "DELETE",
      path: "/runs/crons/:cron_id",
      access: "users",
      async handle(call) {
        await call.service.crons.delete(call.tenant, call.uuid(0, "cron_id"));
        call.send(204, JSON_HEADERS);
      },
    },
  ];
}
