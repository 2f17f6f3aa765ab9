import { expect, test } from "vitest";
import { SocketTokens } from "../../src/access/socket-tokens.ts";
import type { AuthUser } from "../../src/model/auth-user.ts";
import { SimulatedClock } from "../simulation/clock.ts";
import { SimulatedRandom } from "../simulation/random.ts";

const user = (identity: string): AuthUser => ({
  identity,
  display_name: identity,
  permissions: [],
  is_authenticated: true,
  secret: `of ${identity}`,
});

function made() {
  const clock = new SimulatedClock();
  const tokens = new SocketTokens("s".repeat(32), { clock, random: new SimulatedRandom(1) });
  return { clock, tokens };
}

const TENANT = "t";

test("a token is its user's for a minute, and shows nothing of the user", () => {
  const { clock, tokens } = made();
  const [alice, bob] = [user("alice"), user("bob")].map(
    (one) => tokens.issue({ tenant: TENANT, user: one }).token,
  );
  expect(tokens.holderOf(alice ?? "")).toEqual({ tenant: TENANT, user: user("alice") });
  expect(tokens.holderOf(bob ?? "")).toEqual({ tenant: TENANT, user: user("bob") });
  expect(alice).not.toContain("alice");
  clock.advance(60_000);
  expect(tokens.holderOf(alice ?? "")).toBeUndefined();
});

test("a token with another number, or of another process, is nobody's: not even the tenant's", () => {
  const { tokens } = made();
  const { token } = tokens.issue({ tenant: TENANT, user: user("alice") });
  const [tenant, expires, number, signature] = token.split(".");
  expect(tokens.holderOf([tenant, expires, signature].join("."))).toBeUndefined();
  expect(tokens.holderOf([tenant, expires, `${number}x`, signature].join("."))).toBeUndefined();
  expect(made().tokens.holderOf(token)).toBeUndefined();
  expect(made().tokens.holderOf(tokens.issue({ tenant: TENANT }).token)).toEqual({ tenant: TENANT });
});

test("one user's tokens are limited, and expired ones make room", () => {
  const { clock, tokens } = made();
  const issue = (name: string) => tokens.issue({ tenant: TENANT, user: user(name) });
  for (let i = 0; i < 100; i++) issue("alice");
  expect(() => issue("alice")).toThrow("Too many tokens");
  expect(issue("bob").token).toBeTypeOf("string");
  clock.advance(60_000);
  expect(issue("alice").token).toBeTypeOf("string");
});
