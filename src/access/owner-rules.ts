import type { AuthUser } from "../model/auth-user.ts";
import { sha256Hex } from "../model/ids.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { Permission } from "../model/permitted-resources.ts";
import type { AuthEvent, Authorizer, AuthValue } from "../ports/authorizer.ts";
import { compileAuthFilter } from "./auth-filter.ts";

/** The maximum length of a namespace label in the store, in characters. */
const MAX_LABEL_CHARACTERS = 256;

/**
 * The rules of projects that have no rules of their own. The user who creates a thread, a run, an assistant or a cron owns it, and no other
 * user can reach it. All users can read default assistants. In the store, each user has a separate namespace, and sees nothing outside of
 * it.
 */
export class OwnerRules implements Authorizer {
  async decide({ identity }: AuthUser, event: AuthEvent, value: AuthValue): Promise<Permission | undefined> {
    if (event.startsWith("store:")) {
      value["namespace"] = ownNamespace(identity, value["namespace"]);
      return undefined;
    }
    const { metadata } = value;
    const isWritten = event === "assistants:create" || event === "assistants:update";
    if (isWritten && isObject(metadata)) value["metadata"] = withoutCreator(metadata);
    // The members of this filter are also written into the metadata of what the user creates or changes, so that the user owns it.
    const owned = { owner: identity };
    const isShared = event === "assistants:read" || event === "assistants:search";
    return compileAuthFilter(isShared ? { $or: [owned, { created_by: "system" }] } : owned);
  }
}

/** Removes `created_by`, so that a user cannot make an assistant look like a default assistant. */
function withoutCreator(metadata: JsonObject): JsonObject {
  const { created_by: _, ...rest } = metadata;
  return rest;
}

/**
 * Puts the user's label in front of a namespace. A namespace that already begins with the label, such as one from a search result, is
 * returned unchanged.
 */
function ownNamespace(identity: string, namespace: unknown): readonly unknown[] {
  const given: readonly unknown[] = Array.isArray(namespace) ? namespace : [];
  const own = ownerNamespaceLabel(identity);
  return given[0] === own ? given : [own, ...given];
}

/**
 * The label of a user's namespace: `user:` and the identity, in which `.` and `%` are encoded, because a label cannot contain a dot. If
 * that is too long, the label is `user-sha256:` and a hash of the identity.
 */
export function ownerNamespaceLabel(identity: string): string {
  const label = `user:${identity.replaceAll("%", "%25").replaceAll(".", "%2E")}`;
  return label.length <= MAX_LABEL_CHARACTERS ? label : `user-sha256:${sha256Hex(identity)}`;
}
