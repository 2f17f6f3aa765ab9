import { isObject, type JsonObject } from "../model/json.ts";
import { userIdOf, withoutUser, withoutUserFields } from "../model/auth-user.ts";
import { type Permission, permitsOf } from "../model/permitted-resources.ts";
import { multitaskStrategies } from "../model/run.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { AuthValue } from "../ports/authorizer.ts";
import type { Assistants } from "../service/assistants.ts";
import type { IdempotencyKey } from "../service/idempotency.ts";
import type { RunRequest, NewRunUser } from "../service/run-draft.ts";
import type { Runs } from "../service/runs.ts";
import {
  checkedMembers,
  isDefined,
  isNumber,
  isOneOf,
  isText,
  withoutMembers,
} from "./mutated-auth-value-checks.ts";
import { permitsToUseAssistant } from "./assistant-use-permission.ts";
import { withPermission, type UserAuthorizer } from "./user-authorizer.ts";

interface Deps {
  readonly runs: Runs;
  readonly assistants: Pick<Assistants, "defaultId">;
  readonly newId: (beside?: string) => string;
  readonly rules: UserAuthorizer;
}

/** The fields of a run request that handlers find in `value.kwargs` and may change there, with their type checks. */
const kwargsChecks = {
  input: isDefined,
  command: isObject,
  config: isObject,
  context: isObject,
  webhook: isText,
  stream_mode: isDefined,
  feedback_keys: isDefined,
  interrupt_before: isDefined,
  interrupt_after: isDefined,
} as const satisfies { readonly [name in keyof RunRequest]?: unknown };

const valueChecks = {
  assistant_id: isText,
  metadata: isObject,
  multitask_strategy: isOneOf(multitaskStrategies),
  if_not_exists: isOneOf(["reject", "create"]),
  after_seconds: isNumber,
  kwargs: isObject,
};

/** A request to start a run as the rules have changed it, the permission for its thread, and who starts it. */
interface DecidedRun {
  readonly request: RunRequest;
  readonly permission: Permission | undefined;
  readonly by: NewRunUser;
}

/** Restricts runs to what one user may do. */
export function authorizedRuns({ runs, assistants, newId, rules }: Deps): Runs {
  const readable = (key: ThreadKey) => rules.threadKey(key, "threads:read");

  const changeable = (key: ThreadKey, action: string, ids: readonly string[]) =>
    rules.threadKey(key, "threads:update", {
      thread_id: key.thread,
      action,
      metadata: { run_ids: ids, status: "pending" },
    });

  /**
   * Lets the rules decide about a request to start a run. `beside`: the id of another run, or an idempotency key, whose shard gets the run
   * if the run has no thread.
   */
  async function decided(
    thread: string | undefined,
    asked: RunRequest,
    beside?: string,
  ): Promise<DecidedRun> {
    const run_id = newId(thread ?? beside);
    const { input, command, context, webhook, stream_mode, feedback_keys, metadata = {} } = asked;
    const { interrupt_before, interrupt_after, stream_subgraphs = false, stream_resumable = false } = asked;
    const { multitask_strategy = "reject", if_not_exists = "reject", after_seconds = 0 } = asked;
    const assistant_id = assistants.defaultId(asked.assistant_id) ?? asked.assistant_id;
    const value: AuthValue = {
      thread_id: thread,
      assistant_id,
      run_id,
      status: "pending",
      metadata,
      prevent_insert_if_inflight: multitask_strategy === "reject",
      multitask_strategy,
      if_not_exists,
      after_seconds,
      kwargs: {
        input,
        command,
        // Removes what the client says about the user, because only authentication decides who the user is.
        config: asked.config && withoutUserIn(asked.config),
        context,
        webhook,
        stream_mode,
        feedback_keys,
        interrupt_before,
        interrupt_after,
        subgraphs: stream_subgraphs,
        resumable: stream_resumable,
        temporary: thread === undefined,
      },
    };
    const permission = await rules.decide("threads:create_run", value);
    const { kwargs = {}, ...changed } = checkedMembers(value, valueChecks);
    const kept = withoutMembers(asked, { ...kwargsChecks, ...valueChecks });
    const request = {
      ...kept,
      assistant_id,
      ...checkedMembers(kwargs, kwargsChecks),
      ...changed,
    } as RunRequest;
    const mayUse = await permitsToUseAssistant(request.assistant_id, assistants, rules);
    return { request, permission, by: { run_id, user: rules.stored, mayUse } };
  }

  /** Makes an idempotency key unique to the user, because two users may use the same key for different requests. */
  const own = (again: IdempotencyKey | undefined): IdempotencyKey | undefined =>
    again && { ...again, key: `user ${JSON.stringify([rules.user.identity, again.key])}` };

  return {
    async start(key, asked, options) {
      const { request, permission, by } = await decided(key.thread, asked);
      return runs.start(withPermission(key, permission), request, {
        ...options,
        again: own(options?.again),
        by,
      });
    },

    async startAlone(tenant, asked, temporary, options) {
      // The shard is that of the key as the client gave it, because the request was forwarded to that shard.
      const { request, by } = await decided(undefined, asked, options?.again?.key);
      return runs.startAlone(tenant, request, temporary, { again: own(options?.again), by });
    },

    async startBatch(tenant, asked) {
      const all: DecidedRun[] = [];
      // The ids of all runs belong to the shard of the first run, because one shard starts either all of them or none.
      for (const one of asked) all.push(await decided(undefined, one, all[0]?.by.run_id));
      return runs.startBatch(
        tenant,
        all.map(({ request }) => request),
        all.map(({ by }) => by),
      );
    },

    find: async (key, run) => runs.find(await readable(key), run),

    findForReading: async (key, run) => runs.findForReading(await readable(key), run),

    // The rules are not asked here: `keepForReading` reads nothing by itself, and the other functions get a run that the user was allowed
    // to find.
    keepForReading: (key, read) => runs.keepForReading(key, read),
    result: (key, run) => runs.result(key, run),
    lastEventAt: (key, run, checkpoint) => runs.lastEventAt(key, run, checkpoint),
    follow: (key, run, after) => runs.follow(key, run, after),

    show(key, run) {
      const shown = runs.show(key, run);
      const { config } = run.kwargs;
      if (userIdOf(config.configurable) === rules.user.identity) return shown;
      // The user who started the run is shown to other users without most of that user's fields.
      const configurable = withoutUserFields(config.configurable);
      return { ...shown, kwargs: { ...run.kwargs, config: { ...config, configurable } } };
    },

    list: async (key, page) => runs.list(await readable(key), page),

    async search(tenant, { limit, ...asked }) {
      // The event is `threads:search`, because its handler sees and filters the metadata of threads.
      const about = { metadata: {}, limit, offset: 0 };
      const { query, permission } = await rules.decideQuery("threads:search", about, { metadata: isObject });
      return runs.search(tenant, {
        ...asked,
        limit: query.limit,
        thread_metadata: query.metadata ?? {},
        permission,
      });
    },

    followThread: async (key, after, ends) => runs.followThread(await readable(key), after, ends),

    cancel: async (key, run, action, options) =>
      runs.cancel(await changeable(key, action, [run]), run, action, options),

    cancelOnDisconnect(key, run) {
      const register = async () => {
        const permitted = await changeable(key, "interrupt", [run]);
        await runs.find(permitted, run);
        runs.cancelOnDisconnect(permitted, run);
      };
      // Errors are ignored, because this registration only has an effect during a shutdown. When the client disconnects, the rules decide
      // about the cancellation again, and a refusal is logged.
      register().catch(() => undefined);
    },

    cancelAll: async (key, action, which, options) =>
      runs.cancelAll(await changeable(key, action, []), action, which, options),

    cancelSome: async (key, ids, action) => runs.cancelSome(await changeable(key, action, ids), ids, action),

    async cancelEverywhere(tenant, action, which) {
      const value = { action, metadata: { run_ids: [], status: which } };
      const permission = await rules.decide("threads:update", value);
      return runs.cancelEverywhere(tenant, action, which, permitsOf(permission));
    },

    async remove(key, run) {
      const value = { run_id: run, thread_id: key.thread };
      return runs.remove(await rules.threadKey(key, "threads:delete", value), run);
    },
  };
}

/** A config without what the client says about the user. */
export function withoutUserIn(config: JsonObject): JsonObject {
  const { configurable } = config;
  return isObject(configurable) ? { ...config, configurable: withoutUser(configurable) } : config;
}
