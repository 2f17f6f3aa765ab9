import { isObject, type JsonObject } from "../model/json.ts";
import { type Permits, permitsOf } from "../model/permitted-resources.ts";
import type { ThreadKey } from "../model/thread.ts";
import { toIso } from "../model/time.ts";
import type { AuthValue } from "../ports/authorizer.ts";
import type { Assistants } from "../service/assistants.ts";
import type { CronOwner, Crons, NewCron } from "../service/crons/crons.ts";
import { checkedMembers, isText, withoutMembers } from "./mutated-auth-value-checks.ts";
import { withoutUserIn } from "./runs.ts";
import { permitsToUseAssistant } from "./assistant-use-permission.ts";
import type { UserAuthorizer } from "./user-authorizer.ts";

interface Deps {
  readonly crons: Crons;
  readonly assistants: Pick<Assistants, "defaultId">;
  readonly newId: (beside?: string) => string;
  readonly rules: UserAuthorizer;
}

/** The fields of a cron that the project's handlers may change, with their type checks. */
const changes = { payload: isObject, schedule: isText, metadata: isObject };

const searchChecks = { assistant_id: isText, thread_id: isText, metadata: isObject };

/** Restricts crons to what one user may do. Each time a cron is due, the rules decide again whether its run may start. */
export function authorizedCrons({ crons, assistants, newId, rules }: Deps): Crons {
  async function readable(id: string): Promise<Permits | undefined> {
    return permitsOf(await rules.decide("crons:read", { cron_id: id }));
  }

  async function created(asked: NewCron, thread: string | undefined): Promise<[NewCron, CronOwner]> {
    const cron_id = newId(thread);
    const { schedule, metadata, end_time = null, assistant_id, run } = asked;
    const value: AuthValue = {
      payload: { ...withoutUserInRun(run), assistant_id: assistants.defaultId(assistant_id) ?? assistant_id },
      schedule,
      cron_id,
      thread_id: thread,
      user_id: rules.user.identity,
      end_time: end_time === null ? undefined : toIso(end_time),
      metadata,
    };
    await rules.decide("crons:create", value);
    const { payload = {}, ...changed } = checkedMembers(value, changes);
    const { assistant_id: chosen = assistant_id, ...fields } = payload;
    const kept = { ...withoutMembers(asked, changes), schedule };
    const cron = { ...kept, run: fields, ...changed, assistant_id: String(chosen) };
    const mayUse = await permitsToUseAssistant(cron.assistant_id, assistants, rules);
    return [cron, { cron_id, user: rules.stored, mayUse }];
  }

  return {
    create: async (tenant, asked) => crons.create(tenant, ...(await created(asked, undefined))),

    async createOn(key: ThreadKey, asked) {
      const permitted = await rules.threadKey(key, "threads:read");
      return crons.createOn(permitted, ...(await created(asked, key.thread)));
    },

    get: async (tenant, id) => crons.get(tenant, id, await readable(id)),

    async update(tenant, id, { run, schedule, metadata, ...rest }) {
      const value: AuthValue = { cron_id: id, payload: withoutUserInRun(run), schedule, metadata };
      const permission = await rules.decide("crons:update", value);
      const { payload = {}, ...changed } = checkedMembers(value, changes);
      const asked = { ...rest, ...changed, run: payload };
      return crons.update(tenant, id, asked, permitsOf(permission), rules.stored);
    },

    async delete(tenant, id) {
      const permission = await rules.decide("crons:delete", { cron_id: id });
      return crons.delete(tenant, id, permitsOf(permission));
    },

    search: async (tenant, asked) =>
      crons.search(tenant, await rules.permittedQuery("crons:search", asked, searchChecks)),

    async count(tenant, filter) {
      const asked = { ...filter, limit: 0, offset: 0 };
      return crons.count(tenant, await rules.permittedQuery("crons:search", asked, searchChecks));
    },

    // Functions that only the server itself calls, never a user.
    deleteOfAssistant: () => Promise.reject(new TypeError("a user deletes crons one by one")),
    deleteOfThread: () => Promise.reject(new TypeError("a user deletes crons one by one")),
    isUseless: () => Promise.reject(new TypeError("a user asks no such thing")),
    watch: () => {
      throw new TypeError("a user watches no crons");
    },
  };
}

function withoutUserInRun(run: JsonObject): JsonObject {
  const { config } = run;
  return isObject(config) ? { ...run, config: withoutUserIn(config) } : run;
}
