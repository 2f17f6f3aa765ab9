import { parseUuid } from "../model/ids.ts";
import { ANY_SHARD, HOME_SHARD, type ShardSelector } from "../ports/peers.ts";
import type { HttpRequest } from "../ports/transport.ts";
import { QueryParams } from "../schemas/query-params.ts";
import { startKeyOf } from "../service/idempotency.ts";
import type { Match } from "./router.ts";

const STARTS_RUN = /^(\/threads\/:thread_id)?\/runs(\/stream|\/wait)?$|^\/threads\/:thread_id\/events$/;
/** Route paths whose first parameter is an id that determines the shard of the request. */
const OF_ONE_SHARD = /^\/(threads|runs|runs\/crons)\/:/;

/**
 * True if the request starts one run, on a thread or without a thread; false for a batch. Such a request may have an idempotency key, which
 * prevents a second run if the request is repeated.
 */
export const startsRun = ({ route: { method, path } }: Match): boolean =>
  method === "POST" && STARTS_RUN.test(path);

/** Selects the shard of a request; undefined if this process handles the request itself. */
export function shardSelectorOf(found: Match, request: HttpRequest): ShardSelector | undefined {
  const { path } = found.route;
  // An invalid id gives undefined. Then this process handles the request, and refuses it.
  if (OF_ONE_SHARD.test(path)) return parseUuid(found.params[0]);
  if (path.startsWith("/assistants")) return HOME_SHARD;
  if (path === "/inspect/actors") {
    const query = new QueryParams(request.query);
    // Run ids are generated so that they select the shard of their thread.
    return parseUuid(query.text("thread_id")) ?? parseUuid(query.text("run_id"));
  }
  if (path === "/runs/batch" || (path === "/runs/crons" && found.route.method === "POST")) return ANY_SHARD;
  if (!startsRun(found)) return undefined;
  const key = request.header("idempotency-key");
  return key === undefined || key === "" ? ANY_SHARD : startKeyOf(key);
}
