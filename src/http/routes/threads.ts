import { invalidField } from "../../model/errors.ts";
import { parseUuid } from "../../model/ids.ts";
import type { RouteDeps } from "../deps.ts";
import type { NewThread } from "../../service/threads.ts";
import { JSON_HEADERS } from "../../schemas/error-to-response.ts";
import {
  threadCountSchema,
  threadCreateSchema,
  threadPruneSchema,
  threadUpdateSchema,
} from "../../schemas/request-schemas.ts";
import { toThreadLifetime, parseThreadSearch } from "../../schemas/thread-request.ts";
import { mapIterable, pickFields } from "../search-results.ts";
import type { Route } from "../router.ts";

type NewThreadBody = Omit<NewThread, "ttl"> & Pick<ReturnType<typeof threadCreateSchema.parse>, "ttl">;

/** Routes that create, read, find, change, copy and delete threads. */
export function threadRoutes({ sendList, sendJson, sendStored }: RouteDeps): readonly Route[] {
  return [
    {
      method: "POST",
      path: "/threads",
      access: "users",
      async handle(call) {
        const { thread_id, ttl, ...rest } = threadCreateSchema.parse(await call.body()) as NewThreadBody;
        const id = parseUuid(thread_id);
        const asked: NewThread = {
          ...rest,
          ...(id !== undefined && { thread_id: id }),
          ...(ttl !== undefined && { ttl: toThreadLifetime(ttl) }),
        };
        const thread = await call.service.threads.create(call.tenant, asked);
        await sendJson(call, thread);
      },
    },
    {
      method: "GET",
      path: "/threads/:thread_id",
      access: "users",
      async handle(call) {
        const key = call.thread();
        const more = call.query.list("include");
        if (more.some((field) => field !== "ttl")) throw invalidField("include", "must be ttl, or left out");
        await sendStored(call, () => call.service.threads.get(key, more.length > 0));
      },
    },
    {
      method: "POST",
      path: "/threads/search",
      access: "users",
      async handle(call) {
        const query = parseThreadSearch(await call.body());
        const { threads: found, total, next } = await call.service.threads.search(call.tenant, query);
        const { select, extract } = query;
        const fields = extract && select?.length ? [...select, "extracted"] : select;
        const headers = { "x-pagination-total": String(total), ...JSON_HEADERS };
        await sendList(
          call,
          mapIterable(found, (thread) => pickFields(thread, fields)),
          { headers: next === undefined ? headers : { "x-pagination-next": String(next), ...headers } },
        );
      },
    },
    {
      method: "POST",
      path: "/threads/count",
      access: "users",
      async handle(call) {
        call.json(await call.service.threads.count(call.tenant, threadCountSchema.parse(await call.body())));
      },
    },
    {
      method: "POST",
      path: "/threads/prune",
      access: "users",
      async handle(call) {
        const { thread_ids, strategy = "delete" } = threadPruneSchema.parse(await call.body());
        const { tenant } = call;
        const keys = thread_ids.map((id) => ({ tenant, thread: parseUuid(id) ?? id }));
        call.json({ pruned_count: await call.service.threads.prune(keys, strategy) });
      },
    },
    {
      method: "PATCH",
      path: "/threads/:thread_id",
      access: "users",
      async handle(call) {
        const key = call.thread();
        const { ttl, ...rest } = threadUpdateSchema.parse(await call.body());
        const thread = await call.service.threads.update(key, {
          ...rest,
          ...(ttl && { ttl: toThreadLifetime(ttl) }),
        });
        const isMinimal = /\breturn=minimal\b/i.test(call.request.header("prefer") ?? "");
        if (isMinimal) call.send(204, { "preference-applied": "return=minimal" });
        else await sendJson(call, thread);
      },
    },
    {
      method: "DELETE",
      path: "/threads/:thread_id",
      access: "users",
      async handle(call) {
        await call.service.threads.remove(call.thread());
        call.send(204, {});
      },
    },
    {
      method: "GET",
      path: "/threads/:thread_id/storage",
      access: "users",
      async handle(call) {
        await sendJson(call, await call.service.threads.storedSizes(call.thread()));
      },
    },
    {
      method: "POST",
      path: "/threads/:thread_id/copy",
      access: "users",
      async handle(call) {
        const copied = await call.service.threads.copy(call.thread());
        await sendJson(call, copied);
      },
    },
  ];
}
