import { parseUuid } from "../../model/ids.ts";
import type { NewThread, StateSelection } from "../../service/threads.ts";
import type { HttpDeps } from "../deps.ts";
import { invalidField } from "../../wire/errors.ts";
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
        const { thread_id, ...rest } = threadCreate.parse(body);
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
    {
      method: "GET",
      path: "/threads/:thread_id/state",
      async handle(call) {
        const key = call.thread();
        const subgraphs = call.query.flag("subgraphs") ?? false;
        const asked = selection(call.query.list("select"));
        call.json(await threads.state(key, subgraphs ? { ...asked, subgraphs } : asked));
      },
    },
  ];
}

const STATE_FIELDS: ReadonlySet<string> = new Set([
  "values",
  "next",
  "tasks",
  "metadata",
  "created_at",
  "checkpoint",
  "parent_checkpoint",
  "checkpoint_id",
  "parent_checkpoint_id",
  "interrupts",
]);

/** Keys of the state that one request may name. */
const MOST = 1000;

/**
 * What to read for `select`: with it, only the keys named as `values.<key>`, or all for `values`. The small fields always
 * come along: clients look at them without asking whether they are there.
 */
function selection(select: readonly string[]): StateSelection {
  if (select.length === 0) return { writes: true };
  if (select.length > MOST) throw invalidField("select", `must not have more than ${MOST} entries`);
  const keys: string[] = [];
  let all = false;
  let writes = false;
  for (const name of select) {
    if (name.startsWith("values.")) keys.push(name.slice("values.".length));
    else if (!STATE_FIELDS.has(name)) {
      throw invalidField("select", `"${name.slice(0, 100)}" is no field of a state`);
    } else if (name === "values") all = true;
    else if (name === "metadata") writes = true;
  }
  return all ? { writes } : { keys, writes };
}
