import { parseUuid } from "../../model/ids.ts";
import type { StateProjection } from "../../service/state-snapshot.ts";
import { invalidUuid } from "../../schemas/error-to-response.ts";
import { LIST_LIMIT_RANGE, PAGE_LIMITS } from "../../schemas/request-schemas.ts";
import {
  parseHistoryRequest,
  projectionOf,
  parseStateRequest,
  parseUpdateRequest,
} from "../../schemas/state-request.ts";
import type { RouteCall } from "../route-call.ts";
import type { RouteDeps } from "../deps.ts";
import type { Route } from "../router.ts";

export function stateRoutes({ sendList, sendStored }: RouteDeps): readonly Route[] {
  return [
    {
      method: "GET",
      path: "/threads/:thread_id/state",
      access: "users",
      handle(call) {
        const [key, projection] = [call.thread(), projectionFrom(call)];
        return sendStored(call, () => call.service.threads.stateText(key, projection));
      },
    },
    {
      method: "GET",
      path: "/threads/:thread_id/state/:checkpoint_id",
      access: "users",
      async handle(call) {
        const key = call.thread();
        const position = { ns: call.query.text("checkpoint_ns") ?? "", id: call.uuid(1, "checkpoint_id") };
        const projection = projectionFrom(call);
        await sendStored(call, () => call.service.states.at(key, position, projection));
      },
    },
    {
      method: "POST",
      path: "/threads/:thread_id/state/checkpoint",
      access: "users",
      async handle(call) {
        const key = call.thread();
        const { position, projection } = parseStateRequest(await call.body());
        await sendStored(call, () => call.service.states.at(key, position, projection));
      },
    },
    {
      method: "POST",
      path: "/threads/:thread_id/state",
      access: "users",
      async handle(call) {
        const key = call.thread();
        const { position, update } = parseUpdateRequest(await call.body());
        call.json(await call.service.states.update(key, position, update));
      },
    },
    {
      method: "GET",
      path: "/threads/:thread_id/interrupts",
      access: "users",
      async handle(call) {
        call.json(await call.service.states.pendingInterrupts(call.thread()));
      },
    },
    {
      method: "GET",
      path: "/threads/:thread_id/history",
      access: "users",
      async handle(call) {
        const key = call.thread();
        const limit = call.query.integer("limit", PAGE_LIMITS);
        const before = beforeOf(call);
        const ns = call.query.text("checkpoint_ns") ?? "";
        const asked = { ns, id: null, limit, ...(before !== undefined && { before }) };
        await sendList(
          call,
          call.service.states.history(key, asked, projectionOf(call.query.list("select"))),
        );
      },
    },
    {
      method: "POST",
      path: "/threads/:thread_id/history",
      access: "users",
      async handle(call) {
        const key = call.thread();
        const { asked, projection } = parseHistoryRequest(await call.body());
        await sendList(call, call.service.states.history(key, asked, projection));
      },
    },
  ];
}

function projectionFrom({ query }: RouteCall): StateProjection {
  const subgraphs = query.flag("subgraphs") ?? false;
  const listLimit = query.integer("list_limit", LIST_LIMIT_RANGE);
  return {
    ...projectionOf(query.list("select")),
    ...(subgraphs && { subgraphs }),
    ...(listLimit !== undefined && { listLimit }),
  };
}

function beforeOf({ query }: RouteCall): string | undefined {
  const text = query.text("before");
  if (text === undefined || text === "") return undefined;
  const id = parseUuid(text);
  if (id === undefined) throw invalidUuid("before");
  return id;
}
