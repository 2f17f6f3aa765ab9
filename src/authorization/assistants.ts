import { isObject } from "../model/json.ts";
import { permitsOf } from "../model/permitted-resources.ts";
import type { Assistants } from "../service/assistants.ts";
import { checkedMembers, isText, withoutMembers } from "./mutated-auth-value-checks.ts";
import type { UserAuthorizer } from "./user-authorizer.ts";

const settingsChecks = {
  graph_id: isText,
  name: isText,
  description: isText,
  config: isObject,
  context: isObject,
  metadata: isObject,
};

const searchChecks = { graph_id: isText, metadata: isObject };

/** Restricts assistants to what one user may do. */
export function authorizedAssistants(assistants: Assistants, rules: UserAuthorizer): Assistants {
  const idOf = (name: string) => assistants.defaultId(name) ?? name;

  const readable = async (name: string) =>
    permitsOf(await rules.decide("assistants:read", { assistant_id: idOf(name) }));

  return {
    defaultId: (name) => assistants.defaultId(name),

    get: async (tenant, name) => assistants.get(tenant, name, await readable(name)),

    resolve: async (tenant, name) => assistants.resolve(tenant, name, await readable(name)),

    async create(tenant, asked) {
      const { graph_id, assistant_id, if_exists, name, description, config, context, metadata } = asked;
      const value = { assistant_id, graph_id, config, context, metadata, if_exists, name, description };
      const permission = await rules.decide("assistants:create", value);
      const changed = {
        ...withoutMembers(asked, settingsChecks),
        graph_id,
        ...checkedMembers(value, settingsChecks),
      };
      return assistants.create(tenant, changed, permitsOf(permission));
    },

    async update(tenant, name, asked) {
      const value = { ...asked, assistant_id: idOf(name), metadata: asked.metadata };
      const permission = await rules.decide("assistants:update", value);
      return assistants.update(tenant, name, checkedMembers(value, settingsChecks), permitsOf(permission));
    },

    versions: async (tenant, name, query) => assistants.versions(tenant, name, query, await readable(name)),

    async setLatest(tenant, name, version) {
      const permission = await rules.decide("assistants:update", { assistant_id: idOf(name), version });
      return assistants.setLatest(tenant, name, version, permitsOf(permission));
    },

    async delete(tenant, name) {
      const permission = await rules.decide("assistants:delete", { assistant_id: idOf(name) });
      return assistants.delete(tenant, name, permitsOf(permission));
    },

    search: async (tenant, asked) =>
      assistants.search(tenant, await rules.permittedQuery("assistants:search", asked, searchChecks)),

    async count(tenant, filter) {
      const asked = { ...filter, limit: 0, offset: 0 };
      return assistants.count(tenant, await rules.permittedQuery("assistants:search", asked, searchChecks));
    },
  };
}
