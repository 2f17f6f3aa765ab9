import type { ThreadKey } from "../model/thread.ts";
import type { ThreadProtocol } from "../service/thread-protocol.ts";
import type { UserAuthorizer } from "./user-authorizer.ts";

/**
 * Restricts the thread-centric protocol to what one user may do. The caller MUST pass a `protocol` that starts runs
 * with the user's permissions. For other requests, this function adds the user's permission to the thread keys that are
 * passed to `protocol`.
 */
export function authorizedProtocol(protocol: ThreadProtocol, rules: UserAuthorizer): ThreadProtocol {
  const readable = (key: ThreadKey) => rules.threadKey(key, "threads:read");
  return {
    start: async (key, request) => protocol.start(await readable(key), request),
    respond: async (key, answers, request) => protocol.respond(await readable(key), answers, request),
    fork: async (key, request) => protocol.fork(await readable(key), request),
    state: async (key, ns, keys) => protocol.state(await readable(key), ns, keys),
    checkpoints: async (key, query) => protocol.checkpoints(await readable(key), query),
    tree: async (key) => protocol.tree(await readable(key)),
    lastEventNumber: async (key) => protocol.lastEventNumber(await readable(key)),
    follow: async (key, start) => protocol.follow(await readable(key), start),
  };
}
