import { ServiceError } from "../../model/errors.ts";
import { parseUuid } from "../../model/ids.ts";
import type { JsonObject } from "../../model/json.ts";
import type { ActorSnapshot } from "../../ports/inspector.ts";
import type { MachineInfo } from "../../service/actor-inspection.ts";
import type { RouteCall } from "../route-call.ts";
import type { RouteDeps } from "../deps.ts";
import { invalidUuid } from "../../schemas/error-to-response.ts";
import type { Route } from "../router.ts";
import { PAGE_LIMITS } from "../../schemas/request-schemas.ts";

/** Routes for the inspector's statecharts and actors. The WebSocket `/inspect` sends the actors' events. */
export function inspectRoutes({ inspect }: RouteDeps): readonly Route[] {
  return [
    {
      method: "GET",
      path: "/inspect/machines",
      access: "users",
      async handle(call) {
        const machines = await call.service.inspection.machines();
        call.json({ machines: machines.map(machineOf), ...inspect });
      },
    },
    {
      method: "GET",
      path: "/inspect/machines/:machine",
      access: "users",
      async handle(call) {
        const machine = await call.service.inspection.machine(call.param(0));
        if (machine === undefined) throw new ServiceError("route.not_found", "There is no such machine");
        call.json(machineOf(machine));
      },
    },
    {
      method: "GET",
      path: "/inspect/actors",
      access: "users",
      async handle(call) {
        const { tenant, query, service } = call;
        const { inspection } = service;
        const run = uuid(call, "run_id");
        const given = uuid(call, "thread_id");
        const thread = given ?? (run === null ? null : await inspection.threadOf(tenant, run));
        if (thread !== null)
          return call.json({ actors: treeOf(await inspection.actors({ tenant, thread }, run)) });
        const limit = query.integer("limit", { ...PAGE_LIMITS, initial: 100 });
        const live = await inspection.liveThreads(tenant, limit);
        const actors = live.map(({ thread, value, runs }) => ({
          id: thread,
          kind: "thread",
          thread_id: thread,
          machine: "thread",
          value,
          status: "active",
          runs,
        }));
        return call.json({ actors });
      },
    },
  ];
}

function machineOf({ id, hash, definition }: MachineInfo): JsonObject {
  return { id, hash, definition };
}

function uuid(call: RouteCall, name: string): string | null {
  const text = call.query.text(name);
  if (text === undefined || text === "") return null;
  const id = parseUuid(text);
  if (id === undefined) throw invalidUuid(name);
  return id;
}

/** Returns the actors as trees: each actor is in the `children` of its parent. */
function treeOf(shown: readonly ActorSnapshot[]): readonly JsonObject[] {
  const children = new Map<string | null, ActorSnapshot[]>();
  for (const one of shown) children.set(one.actor.parent, [...(children.get(one.actor.parent) ?? []), one]);
  const below = (parent: string | null): readonly JsonObject[] =>
    (children.get(parent) ?? []).map(({ actor, state }) => ({
      id: actor.id,
      kind: actor.kind,
      name: actor.name,
      machine: actor.machine,
      thread_id: actor.thread,
      ...(actor.run !== null && { run_id: actor.run }),
      value: state.value,
      status: state.status,
      tags: state.tags,
      context: state.context,
      children: below(actor.id),
    }));
  return below(null);
}
