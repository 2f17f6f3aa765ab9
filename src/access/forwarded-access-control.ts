import { ServiceError } from "../model/errors.ts";
import type { AuthUser } from "../model/auth-user.ts";
import type { AuthenticatedClient } from "../ports/peers.ts";
import type { HttpRequest } from "../ports/transport.ts";
import { AccessControl, type AccessDecision, type AccessOptions } from "./access-control.ts";

type ReadClient = (request: Pick<HttpRequest, "header">) => AuthenticatedClient | undefined;

/**
 * Access control for requests that another process of this server forwards. That process has checked access, and names the client in the
 * request.
 */
export class ForwardedAccessControl extends AccessControl {
  readonly #clientOf: ReadClient;

  constructor(
    options: AccessOptions,
    deps: ConstructorParameters<typeof AccessControl>[1],
    clientOf: ReadClient,
  ) {
    super(options, deps);
    this.#clientOf = clientOf;
  }

  override check(request: HttpRequest): AccessDecision {
    const client = this.#clientOf(request);
    if (client === undefined) {
      const refusal = new ServiceError("auth.forbidden", "Only processes of this server are served here");
      return { tenant: undefined, headers: {}, refusal };
    }
    return { tenant: client.user === undefined ? client.tenant : undefined, headers: {} };
  }

  override checkSocket(request: HttpRequest): AccessDecision {
    const decision = this.check(request);
    const { tenant, user } = this.#clientOf(request) ?? {};
    return user === undefined ? decision : { ...decision, tenant, user };
  }

  override async authenticate(request: HttpRequest): Promise<AuthUser> {
    const user = this.#clientOf(request)?.user;
    if (user === undefined) throw new ServiceError("auth.required", "The request says nothing of its user");
    return user;
  }
}
