import { JSON_HEADERS } from "../../schemas/error-to-response.ts";
import type { RouteDeps } from "../deps.ts";
import type { Route } from "../router.ts";
import { runPath, sendEvent } from "../start-run.ts";

export function machineEventRoutes(deps: RouteDeps): readonly Route[] {
  return [
    {
      method: "GET",
      path: "/threads/:thread_id/events/possible",
      access: "users",
      async handle(call) {
        call.json(await call.service.events.possible(call.thread()));
      },
    },
    {
      method: "POST",
      path: "/threads/:thread_id/events",
      access: "users",
      async handle(call) {
        const run = await sendEvent(deps, call);
        const { run_id, thread_id } = run;
        const headers = { "content-location": runPath(run), ...JSON_HEADERS };
        // The response shows the run's status at its admission, like the responses of the routes that create runs.
        call.send(202, headers, JSON.stringify({ run_id, thread_id, status: "pending" }));
      },
    },
  ];
}
