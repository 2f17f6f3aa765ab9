import { type Auth, type AuthHandlers, CustomAuth } from "../access/custom-auth.ts";
import { createJwtAuth } from "../access/jwt-auth.ts";
import type { Config } from "../config/config.ts";
import { loadAuth, loadKeySet } from "../graph-loader/load-auth.ts";
import { abortable } from "../ports/abortable.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import type { Random } from "../ports/random.ts";
import type { Scheduler } from "../ports/scheduler.ts";

interface Deps {
  readonly clock: Clock;
  readonly random: Random;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  /** Aborted near the end of the shutdown. Requests that still wait for authentication or authorization are then refused. */
  readonly stop: AbortSignal;
}

/**
 * Sets up the authentication and authorization of users; undefined if the server has no users. `given`, an option of `createApp`, takes
 * precedence over the configuration file.
 * @throws ServiceError `config.invalid`
 */
export async function setUpAuth(
  given: AuthHandlers | undefined,
  config: Config | undefined,
  deps: Deps,
): Promise<Auth | undefined> {
  const auth = await openAuth(given, config, deps);
  const { stop } = deps;
  return (
    auth && {
      authenticate: (request) => abortable(auth.authenticate(request), stop),
      decide: (...asked) => abortable(auth.decide(...asked), stop),
    }
  );
}

async function openAuth(
  given: AuthHandlers | undefined,
  config: Config | undefined,
  { clock, scheduler, logger }: Deps,
): Promise<Auth | undefined> {
  if (given !== undefined) return new CustomAuth(given, scheduler);
  if (config?.auth === undefined) return undefined;
  const { users } = config.auth;
  if (users.kind === "handlers")
    return new CustomAuth(await loadAuth(config.path, users.file, { scheduler }), scheduler);
  const { issuer, audience, jwks } = users;
  const keys = jwks.kind === "url" ? jwks.url : jwks.kind === "file" ? loadKeySet(jwks.file) : jwks.set;
  return createJwtAuth({ issuer, audience, jwks: keys }, { clock, logger });
}
