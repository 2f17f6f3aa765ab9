import type { ThreadKey, ThreadStatus } from "../model/thread.ts";
import { ServiceError } from "../model/errors.ts";
import { isObject } from "../model/json.ts";
import { permitsOf } from "../model/permitted-resources.ts";
import type { Threads } from "../service/threads.ts";
import type { ThreadStates } from "../service/thread-states.ts";
import { checkedMembers, isOneOf, isTexts, withoutMembers } from "./mutated-auth-value-checks.ts";
import type { UserAuthorizer } from "./user-authorizer.ts";

const isStatus = isOneOf(["idle", "busy", "interrupted", "error"] satisfies ThreadStatus[]);

const searchChecks = { ids: isTexts, status: isStatus, values: isObject, metadata: isObject };

/** Restricts threads to what one user may do. */
export function authorizedThreads(threads: Threads, rules: UserAuthorizer): Threads {
  const readable = (key: ThreadKey) => rules.threadKey(key, "threads:read");

  return {
    async create(tenant, asked) {
      const { thread_id, metadata, if_exists } = asked;
      const value = { thread_id, metadata, if_exists };
      const permission = await rules.decide("threads:create", value);
      const changed = { ...asked, metadata: {}, ...checkedMembers(value, { metadata: isObject }) };
      // A thread that is created with a state also needs the permission to update states.
      const isWritten = (asked.supersteps ?? []).length > 0;
      const written = isWritten ? await rules.decide("threads:update", { thread_id }) : undefined;
      if (permitsOf(written)?.(changed.metadata) === false)
        throw new ServiceError("auth.forbidden", "Not authorized");
      return threads.create(tenant, changed, permitsOf(permission));
    },

    record: async (key) => threads.record(await readable(key)),

    get: async (key, withTtl) => threads.get(await readable(key), withTtl),

    async search(tenant, asked) {
      const { query, permission } = await rules.decideQuery("threads:search", asked, searchChecks);
      return threads.search(tenant, { ...query, permission });
    },

    async count(tenant, filter) {
      const asked = { ...filter, limit: 0, offset: 0 };
      const { query, permission } = await rules.decideQuery("threads:search", asked, searchChecks);
      return threads.count(tenant, { ...query, permission });
    },

    async update(key, update) {
      const value = { thread_id: key.thread, metadata: update.metadata };
      const permitted = await rules.threadKey(key, "threads:update", value);
      const checks = { metadata: isObject };
      return threads.update(permitted, {
        ...withoutMembers(update, checks),
        ...checkedMembers(value, checks),
      });
    },

    remove: async (key) => threads.remove(await rules.threadKey(key, "threads:delete")),

    removeOf: async (tenant, assistant) =>
      threads.removeOf(tenant, assistant, await rules.decide("threads:delete", { assistant_id: assistant })),

    async copy(key) {
      const from = await readable(key);
      // The thread is read before the next decision, so that copying a thread that the user may not read takes as long as copying a thread
      // that does not exist.
      const record = await threads.record(from);
      const value = { thread_id: undefined, metadata: structuredClone(record.metadata) };
      await rules.decide("threads:create", value);
      return threads.copy(from, checkedMembers(value, { metadata: isObject }).metadata);
    },

    async prune(keys, strategy) {
      const event = strategy === "delete" ? "threads:delete" : "threads:update";
      const permitted: ThreadKey[] = [];
      // The rules decide about all threads before any thread is changed.
      for (const key of keys) permitted.push(await rules.threadKey(key, event));
      return threads.prune(permitted, strategy);
    },

    storedSizes: async (key) => threads.storedSizes(await readable(key)),

    state: async (key, projection) => threads.state(await readable(key), projection),

    stateText: async (key, projection) => threads.stateText(await readable(key), projection),
  };
}

/** Restricts the states of threads to what one user may do. */
export function authorizedStates(states: ThreadStates, rules: UserAuthorizer): ThreadStates {
  const readable = (key: ThreadKey) => rules.threadKey(key, "threads:read");
  return {
    at: async (key, position, projection) => states.at(await readable(key), position, projection),

    async *history(key, asked, projection) {
      yield* states.history(await readable(key), asked, projection);
    },

    update: async (key, position, update) =>
      states.update(await rules.threadKey(key, "threads:update"), position, update, rules.user.identity),

    pendingInterrupts: async (key) => states.pendingInterrupts(await readable(key)),
  };
}
