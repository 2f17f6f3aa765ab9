import type { AuthUser } from "../model/auth-user.ts";
import { ServiceError } from "../model/errors.ts";
import { DEFAULT_TENANT } from "../model/thread.ts";
import type { Authorizer } from "../ports/authorizer.ts";
import type { Engine } from "../ports/engine.ts";
import { createGraphIntrospection } from "../service/graph-introspection.ts";
import type { Service, UnrestrictedService } from "../service/service.ts";
import type { Webhooks } from "../service/webhooks/webhooks.ts";
import { authorizedAssistants } from "./assistants.ts";
import { authorizedCrons } from "./crons.ts";
import { authorizedInspection } from "./inspection.ts";
import { authorizedProtocol } from "./thread-protocol.ts";
import { authorizedRuns } from "./runs.ts";
import { authorizedStore } from "./store.ts";
import { authorizedStates, authorizedThreads } from "./threads.ts";
import { UserAuthorizer } from "./user-authorizer.ts";

export interface AuthorizationDeps {
  readonly service: UnrestrictedService;
  readonly authorizer: Authorizer;
  readonly engine: Engine;
  /** Creates an id. It belongs to the same shard as `beside`, if that is given. */
  readonly newId: (beside?: string) => string;
}

/** Creates the service of a user: the project's rules decide about each request before it is carried out. */
export function createUserServices(deps: AuthorizationDeps): (user: AuthUser) => Service {
  return (user) => new UserService(deps, new UserAuthorizer(deps.authorizer, user));
}

/**
 * The service of one user. Each part implements all functions of the unrestricted part, which the compiler checks, so that no function is
 * forgotten: it either asks the rules, or gets records that the user was allowed to find. A part is created when it is used, because most
 * requests use only one.
 */
class UserService implements Service {
  readonly #deps: AuthorizationDeps;
  readonly #rules: UserAuthorizer;

  constructor(deps: AuthorizationDeps, rules: UserAuthorizer) {
    this.#deps = deps;
    this.#rules = rules;
  }

  get threads(): Service["threads"] {
    return authorizedThreads(this.#deps.service.threads, this.#rules);
  }

  get states(): Service["states"] {
    return authorizedStates(this.#deps.service.states, this.#rules);
  }

  get runs(): Service["runs"] {
    const { service, newId } = this.#deps;
    return authorizedRuns({ ...service, newId, rules: this.#rules });
  }

  /** Needs no further restriction, because it uses only parts that are restricted. */
  get events(): Service["events"] {
    const { threads, states, runs } = this;
    return this.#deps.service.eventsWith({ threads, states, runs });
  }

  get protocol(): Service["protocol"] {
    return authorizedProtocol(this.#deps.service.protocolWith(this.runs), this.#rules);
  }

  get assistants(): Service["assistants"] {
    return authorizedAssistants(this.#deps.service.assistants, this.#rules);
  }

  get drawings(): Service["drawings"] {
    return createGraphIntrospection(this.#deps.engine, this.assistants);
  }

  get crons(): Service["crons"] {
    const { service, newId } = this.#deps;
    return authorizedCrons({ ...service, newId, rules: this.#rules });
  }

  get webhooks(): Webhooks {
    return noWebhooks;
  }

  get inspection(): Service["inspection"] {
    const { inspection } = this.#deps.service;
    const { assistants } = this;
    return authorizedInspection({ inspection, assistants, tenant: DEFAULT_TENANT, rules: this.#rules });
  }

  get store(): Service["store"] {
    return authorizedStore(this.#deps.service.store, this.#rules);
  }
}

const refusal = () => new ServiceError("auth.forbidden", "No rule says which users may see webhooks");

/** Users cannot reach webhook deliveries, because there are no rules for them. */
const noWebhooks: Webhooks = {
  accept: () => {
    throw refusal();
  },
  list: () => Promise.reject(refusal()),
  retry: () => Promise.reject(refusal()),
  remove: () => Promise.reject(refusal()),
};
