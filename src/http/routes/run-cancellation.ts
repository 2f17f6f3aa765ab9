import { invalidField } from "../../model/errors.ts";
import type { CancelAction } from "../../model/run.ts";
import type { CancelTarget } from "../../service/run-cancellation.ts";
import { checkCancelReason } from "../../schemas/cancel-reason-check.ts";
import { cancelActions, runsCancelSchema } from "../../schemas/request-schemas.ts";
import type { RouteCall } from "../route-call.ts";
import type { Route } from "../router.ts";

const IN_FLIGHT = ["pending", "running", "all"] as const satisfies CancelTarget[];

/** The maximum length of the reason for a cancellation, in characters. */
const MAX_REASON_CHARACTERS = 200;

/** Routes that cancel or delete runs. */
export function cancellationRoutes(): readonly Route[] {
  return [
    {
      method: "POST",
      path: "/threads/:thread_id/runs/:run_id/cancel",
      access: "users",
      async handle(call) {
        const key = call.thread();
        const id = call.run();
        const { wait, action, ...options } = cancelOf(call);
        await call.service.runs.cancel(key, id, action, { wait, ...options });
        if (!wait) return call.send(202, {});
        call.send(204, { location: `/threads/${key.thread}/runs/${id}/join` });
      },
    },
    {
      // Cancels the running runs of a thread, its queued runs, or both, without naming them.
      method: "POST",
      path: "/threads/:thread_id/runs/cancel",
      access: "users",
      async handle(call) {
        const key = call.thread();
        const { wait, action, ...options } = cancelOf(call);
        const which = call.query.choice("status", IN_FLIGHT) ?? "all";
        await call.service.runs.cancelAll(key, action, which, { wait, ...options });
        call.send(wait ? 204 : 202, {});
      },
    },
    {
      method: "POST",
      path: "/runs/cancel",
      access: "users",
      async handle(call) {
        const action = actionOf(call);
        const { tenant, service } = call;
        const { runs } = service;
        const { thread_id: thread, run_ids: ids, status } = runsCancelSchema.parse(await call.body());
        if (status !== undefined && thread === undefined && ids === undefined) {
          await runs.cancelEverywhere(tenant, action, status);
        } else if (status === undefined && thread !== undefined && ids !== undefined) {
          const key = { tenant, thread: thread.toLowerCase() };
          await runs.cancelSome(
            key,
            ids.map((id) => id.toLowerCase()),
            action,
          );
        } else {
          throw invalidField("body", "must have either status, or thread_id and run_ids");
        }
        call.send(204, {});
      },
    },
    {
      method: "DELETE",
      path: "/threads/:thread_id/runs/:run_id",
      access: "users",
      async handle(call) {
        await call.service.runs.remove(call.thread(), call.run());
        call.send(204, {});
      },
    },
  ];
}

const actionOf = (call: RouteCall): CancelAction => call.query.choice("action", cancelActions) ?? "interrupt";

function cancelOf(call: RouteCall): {
  readonly action: CancelAction;
  readonly wait: boolean;
  readonly reason?: string;
} {
  const { query } = call;
  const action = actionOf(call);
  const wait = query.flag("wait") ?? false;
  const reason = query.text("reason");
  if (reason === undefined || reason === "") return { action, wait };
  checkCancelReason(action, reason);
  if (reason.length > MAX_REASON_CHARACTERS)
    throw invalidField("reason", `must have at most ${MAX_REASON_CHARACTERS} characters`);
  return { action, wait, reason };
}
