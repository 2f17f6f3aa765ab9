import { expect, test } from "vitest";
import { UserAuthorizer } from "../../src/authorization/user-authorizer.ts";
import { ownerNamespaceLabel, OwnerRules } from "../../src/access/owner-rules.ts";
import type { AuthUser } from "../../src/model/auth-user.ts";
import { permitsOf } from "../../src/model/permitted-resources.ts";
import type { AuthEvent } from "../../src/ports/authorizer.ts";

const alice: AuthUser = { identity: "alice", display_name: "A", permissions: [], is_authenticated: true };
const decide = async (event: AuthEvent, value: Record<string, unknown> = {}) => {
  const permission = await new UserAuthorizer(new OwnerRules(), alice).decide(event, value);
  return { value, permits: permitsOf(permission) };
};

test.each<AuthEvent>([
  "threads:create",
  "threads:update",
  "threads:create_run",
  "assistants:create",
  "crons:create",
])("%s: what a user makes is the user's, whatever the client says", async (event) => {
  const { value, permits } = await decide(event, { metadata: { owner: "bob", n: 1 } });
  expect(value["metadata"]).toEqual({ owner: "alice", n: 1 });
  expect([permits?.({ owner: "alice" }), permits?.({ owner: "bob" }), permits?.({})]).toEqual([
    true,
    false,
    false,
  ]);
});

test.each<AuthEvent>(["threads:read", "threads:delete", "threads:search", "crons:read", "assistants:delete"])(
  "%s reaches what is the user's own",
  async (event) => {
    const { permits } = await decide(event);
    expect([permits?.({ owner: "alice" }), permits?.({ owner: "bob" }), permits?.({})]).toEqual([
      true,
      false,
      false,
    ]);
  },
);

test.each<AuthEvent>(["assistants:create", "assistants:update"])(
  "%s: a user's assistant cannot pose as a default one",
  async (event) => {
    const { value } = await decide(event, { metadata: { created_by: "system", n: 1 } });
    expect(value["metadata"]).toEqual({ owner: "alice", n: 1 });
  },
);

test("a search may ask for default assistants", async () => {
  const { value } = await decide("assistants:search", { metadata: { created_by: "system" } });
  expect(value["metadata"]).toEqual({ created_by: "system" });
});

test.each<AuthEvent>(["assistants:read", "assistants:search"])(
  "%s reaches default assistants too",
  async (event) => {
    const { permits } = await decide(event);
    expect([permits?.({ created_by: "system" }), permits?.({ owner: "bob" })]).toEqual([true, false]);
  },
);

test.each<readonly [given: unknown, namespace: readonly string[]]>([
  [["notes"], ["user:alice", "notes"]],
  [
    ["user:bob", "notes"],
    ["user:alice", "user:bob", "notes"],
  ],
  [
    ["user:alice", "notes"],
    ["user:alice", "notes"],
  ],
  [[], ["user:alice"]],
  [undefined, ["user:alice"]],
])("the namespace %j of the store is below the user's own", async (namespace, own) => {
  const { value } = await decide("store:search", { namespace });
  expect(value["namespace"]).toEqual(own);
});

test("labels of different users differ, and have no dots", () => {
  const names = ["a.b", "a%2Eb", "a%b", "a", "A", `${"x".repeat(300)}1`, `${"x".repeat(300)}2`];
  const labels = names.map(ownerNamespaceLabel);
  expect(new Set(labels).size).toBe(names.length);
  for (const label of labels) expect(label).toMatch(/^user[^.]{1,252}$/);
});
