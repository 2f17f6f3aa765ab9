import { invalidField } from "../../model/errors.ts";
import type { RunListQuery } from "../../service/runs.ts";
import type { RouteCall } from "../route-call.ts";
import type { RouteDeps } from "../deps.ts";
import { memorySizeOf } from "../../model/memory-size.ts";
import { JSON_HEADERS } from "../../schemas/error-to-response.ts";
import { parseRunSearch } from "../../schemas/run-search-request.ts";
import { checkFilterSize } from "../../schemas/metadata-filter-schema.ts";
import { mapIterable, paginationHeaders, pickFields } from "../search-results.ts";
import type { Route } from "../router.ts";
import { PAGE_LIMITS, PAGE_OFFSETS, RUN_FILTER_STATUSES } from "../../schemas/request-schemas.ts";
import { startBatch, startThreadlessRun, type StartedRun, startRun } from "../start-run.ts";

/** Bytes. A response to a batch smaller than this is sent in one write. */
const MAX_WHOLE_BATCH_BYTES = 512 * 1024;

const FIELDS: ReadonlySet<string> = new Set([
  "run_id",
  "thread_id",
  "assistant_id",
  "created_at",
  "updated_at",
  "metadata",
  "status",
  "kwargs",
  "multitask_strategy",
  "cancel_reason",
  "queue_position",
  "scheduled_for",
  "slowest_node",
]);

export function runRoutes(deps: RouteDeps): readonly Route[] {
  const { sendList, sendJson, sendStored } = deps;

  function created(call: RouteCall, { key, run, path }: StartedRun): Promise<void> | void {
    // Shows the run's status at admission. The run may have started since, but a client can ask for the current status.
    const shown = { ...call.service.runs.show(key, run), status: "pending" };
    const headers = { "content-location": path, ...JSON_HEADERS };
    return sendJson(call, shown, { headers });
  }

  return [
    {
      method: "POST",
      path: "/threads/:thread_id/runs",
      access: "users",
      handle: async (call) => created(call, await startRun(deps, call)),
    },
    {
      method: "POST",
      path: "/runs",
      access: "users",
      handle: async (call) => created(call, await startThreadlessRun(deps, call, false)),
    },
    {
      method: "GET",
      path: "/threads/:thread_id/runs",
      access: "users",
      async handle(call) {
        const key = call.thread();
        const { query } = call;
        const metadata = query.object("metadata");
        checkFilterSize(metadata, "metadata");
        const select = query.list("select");
        const odd = select.find((field) => !FIELDS.has(field));
        if (odd !== undefined) throw invalidField("select", `"${odd.slice(0, 100)}" is no field of a run`);
        const status = query.choice("status", RUN_FILTER_STATUSES);
        const page: RunListQuery = {
          limit: query.integer("limit", PAGE_LIMITS),
          offset: query.integer("offset", PAGE_OFFSETS),
          ...(status !== undefined && { status }),
          ...(metadata !== undefined && { metadata }),
        };
        const { runs } = call.service;
        const { runs: found, total } = await runs.list(key, page);
        const shown = mapIterable(found, (run) => pickFields(runs.show(key, run), select));
        await sendList(call, shown, { headers: paginationHeaders(page.offset + page.limit, total) });
      },
    },
    {
      method: "POST",
      path: "/runs/search",
      access: "users",
      async handle(call) {
        const query = parseRunSearch(await call.body());
        const { runs, next } = await call.service.runs.search(call.tenant, query);
        const headers = next === undefined ? JSON_HEADERS : { "x-pagination-next": next, ...JSON_HEADERS };
        await sendList(call, runs, { headers });
      },
    },
    {
      method: "GET",
      path: "/threads/:thread_id/runs/:run_id",
      access: "users",
      async handle(call) {
        const key = call.thread();
        const id = call.run();
        const { runs } = call.service;
        await sendStored(call, async () => runs.show(key, await runs.find(key, id)));
      },
    },
    {
      method: "POST",
      path: "/runs/batch",
      access: "users",
      async handle(call) {
        const { tenant, service } = call;
        const { runs } = service;
        const started = await startBatch(deps, call);
        const shown = started.map((run) => {
          return { ...runs.show({ tenant, thread: run.thread_id }, run), status: "pending" };
        });
        // The response is sent in one write, because the nodes of these runs begin in the next turn of the event loop. A node that computes
        // for long would delay further writes.
        if (memorySizeOf(shown) < MAX_WHOLE_BATCH_BYTES) call.json(shown);
        else await sendList(call, shown);
      },
    },
  ];
}
