import { parseUuid } from "../../model/ids.ts";
import type { NewThread } from "../../service/threads.ts";
import type { RouteDeps } from "../deps.ts";
import type { Route } from "../router.ts";
import { invalidField } from "../../schemas/error-responses.ts";
import { threadCreateSchema } from "../../schemas/request-schemas.ts";
import { toThreadLifetime } from "../../schemas/thread-request.ts";

type Asked = Omit<NewThread, "ttl"> & Pick<ReturnType<typeof threadCreateSchema.parse>, "ttl">;

export function threadRoutes({ service: { threads }, sendJson }: RouteDeps): readonly Route[] {
  return [
    {
      method: "POST",
      path: "/threads",
      async handle(call) {
        const { thread_id, ttl, ...rest } = threadCreateSchema.parse(await call.body()) as Asked;
        const id = parseUuid(thread_id);
        const asked: NewThread = {
          ...rest,
          ...(id !== undefined && { thread_id: id }),
          ...(ttl !== undefined && { ttl: toThreadLifetime(ttl) }),
        };
        const thread = await threads.create(call.tenant, asked);
        await sendJson(call, thread);
      },
    },
    {
      method: "GET",
      path: "/threads/:thread_id",
      async handle(call) {
        const key = call.thread();
        const more = call.query.list("include");
        if (more.some((field) => field !== "ttl")) throw invalidField("include", "must be ttl, or left out");
        await sendJson(call, await threads.get(key, more.length > 0));
      },
    },
  ];
}
