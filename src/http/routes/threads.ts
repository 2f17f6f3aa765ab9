import { parseUuid } from "../../model/ids.ts";
import type { NewThread } from "../../service/threads.ts";
import type { HttpDeps } from "../deps.ts";
import type { Route } from "../router.ts";
import { threadCreate } from "../../wire/schemas.ts";
import { refuseUnserved } from "../../wire/unserved.ts";

export function threadRoutes({ service: { threads } }: HttpDeps): readonly Route[] {
  return [
    {
      method: "POST",
      path: "/threads",
      async handle(call) {
        const body = await call.body();
        refuseUnserved(body, "thread");
        const { thread_id, ...rest } = threadCreate.parse(body) as NewThread;
        const id = parseUuid(thread_id);
        const asked: NewThread = id === undefined ? rest : { ...rest, thread_id: id };
        call.json(await threads.create(call.tenant, asked));
      },
    },
    {
      method: "GET",
      path: "/threads/:thread_id",
      async handle(call) {
        call.json(await threads.get(call.thread()));
      },
    },
  ];
}
