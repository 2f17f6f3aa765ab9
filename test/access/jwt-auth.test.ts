import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWTHeaderParameters, type JWTPayload, SignJWT } from "jose";
import { describe, expect, onTestFinished, test } from "vitest";
import { createJwtAuth, type JwtOptions } from "../../src/access/jwt-auth.ts";
import { createLogger } from "../../src/platform/log.ts";
import type { JsonObject } from "../../src/model/json.ts";
import { failureResponseOf } from "../../src/schemas/error-to-response.ts";
import { SimulatedClock } from "../simulation/clock.ts";

const ISSUER = "https://id.example/";
const clock = new SimulatedClock();
const now = Math.floor(clock.now() / 1_000);

type Keys = Awaited<ReturnType<typeof generateKeyPair>>;
const keysOf = (alg: string): Promise<Keys> => generateKeyPair(alg, { extractable: true });
const publicKey = async ({ publicKey: key }: Keys, more: object): Promise<JsonObject> => ({
  ...(await exportJWK(key)),
  ...more,
});

const [rsa, other, ec, ed] = [
  await keysOf("RS256"),
  await keysOf("RS256"),
  await keysOf("ES256"),
  await keysOf("EdDSA"),
];
const jwks = {
  keys: [
    await publicKey(rsa, { kid: "rsa", alg: "RS256", use: "sig" }),
    await publicKey(ec, { kid: "ec" }),
    await publicKey(ed, { kid: "ed" }),
    { kty: "oct", kid: "shared", k: Buffer.from("s".repeat(32)).toString("base64url") },
  ],
};

const claims = { iss: ISSUER, aud: "heddle", sub: "alice", exp: now + 60, scope: "read write" };

/** Claims that replace those of a valid token; undefined: removes the claim. */
type Change = { readonly [name in keyof JWTPayload]: unknown };

function sign(
  change: Change = {},
  header: JWTHeaderParameters = { alg: "RS256", kid: "rsa" },
  key: Parameters<SignJWT["sign"]>[0] = rsa.privateKey,
): Promise<string> {
  const payload = Object.fromEntries(
    Object.entries({ ...claims, ...change }).filter(([, value]) => value !== undefined),
  );
  return new SignJWT(payload).setProtectedHeader(header).sign(key);
}

const logged: string[] = [];
const logger = createLogger({ clock, level: "debug", write: (line) => logged.push(line) });

const open = (more: Partial<JwtOptions> = {}) =>
  createJwtAuth({ issuer: ISSUER, audience: "heddle", jwks, ...more }, { clock, logger });

async function answerTo(authorization: string | undefined, auth = open()) {
  const headers = authorization === undefined ? {} : { authorization };
  try {
    return await (await auth).authenticate(new Request("http://here/", { headers }));
  } catch (cause) {
    const { status, body } = failureResponseOf(cause);
    return { status, ...(JSON.parse(body) as { detail: string; code: string }) };
  }
}

describe("a token is taken", () => {
  test.each([
    ["RS256", "rsa", rsa],
    ["ES256", "ec", ec],
    ["EdDSA", "ed", ed],
  ])("that is signed with %s", async (alg, kid, keys) => {
    expect(await answerTo(`Bearer ${await sign({}, { alg, kid }, keys.privateKey)}`)).toEqual({
      identity: "alice",
      display_name: "alice",
      permissions: ["read", "write"],
      is_authenticated: true,
      claims,
    });
  });

  test.each<readonly [what: string, change: Change, user: object]>([
    ["for one audience of several", { aud: ["a", "heddle"] }, { identity: "alice" }],
    ["with a name", { name: "Alice A.", email: "a@b.c" }, { display_name: "Alice A." }],
    ["with scopes in a list", { scope: undefined, scp: ["x", "y"] }, { permissions: ["x", "y"] }],
    ["without scopes", { scope: undefined }, { permissions: [] }],
    ["within the clocks' difference", { exp: now - 4 }, { identity: "alice" }],
  ])("%s", async (_, change, user) => {
    expect(await answerTo(`bearer ${await sign(change)}`)).toMatchObject(user);
  });

  test("for any of the audiences that the configuration lists", async () => {
    const auth = open({ audience: ["a", "b"] });
    expect(await answerTo(`Bearer ${await sign({ aud: "b" })}`, auth)).toMatchObject({ identity: "alice" });
    expect(await answerTo(`Bearer ${await sign()}`, auth)).toMatchObject({ status: 401 });
  });
});

describe("the log tells which check a token failed", () => {
  test.each<readonly [why: string, token: () => Promise<string>]>([
    ['unexpected "iss" claim value', () => sign({ iss: "https://evil.example/" })],
    ['unexpected "aud" claim value', () => sign({ aud: "other" })],
    ['missing required "sub" claim', () => sign({ sub: undefined })],
    ['"sub" is empty, or no text', () => sign({ sub: "" })],
    ['"exp" claim timestamp check failed', () => sign({ exp: now - 6 })],
    [
      '"alg" (Algorithm) Header Parameter value not allowed',
      () => sign({}, { alg: "HS256" }, Buffer.alloc(32)),
    ],
    ["no applicable key found in the JSON Web Key Set", () => sign({}, { alg: "RS256", kid: "none" })],
    ["signature verification failed", () => sign({}, { alg: "RS256", kid: "rsa" }, other.privateKey)],
  ])("%s", async (why, token) => {
    logged.length = 0;
    expect(await answerTo(`Bearer ${await token()}`)).toMatchObject({ status: 401 });
    expect(logged).toEqual([expect.stringContaining(JSON.stringify(why))]);
    expect(logged[0]).toContain('"level":"debug"');
  });
});

describe("a token is refused", () => {
  test.each<readonly [what: string, change: Change]>([
    ["of another issuer", { iss: "https://evil.example/" }],
    ["without an issuer", { iss: undefined }],
    ["for another audience", { aud: "other" }],
    ["without an audience", { aud: undefined }],
    ["without a subject", { sub: undefined }],
    ["with an empty subject", { sub: "" }],
    ["with a subject that is no text", { sub: 7 }],
    ["without an end", { exp: undefined }],
    ["that has expired", { exp: now - 6 }],
    ["that is not valid yet", { nbf: now + 60 }],
  ])("%s", async (_, change) => {
    expect(await answerTo(`Bearer ${await sign(change)}`)).toMatchObject({
      status: 401,
      code: "auth.required",
    });
  });

  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  test.each<readonly [what: string, token: () => Promise<string> | string]>([
    ["of another key", () => sign({}, { alg: "RS256", kid: "rsa" }, other.privateKey)],
    ["of a key that is not in the set", () => sign({}, { alg: "RS256", kid: "none" }, other.privateKey)],
    [
      "whose payload was changed",
      async () => (await sign()).replace(/\.[^.]+\./, `.${part({ ...claims, sub: "bob" })}.`),
    ],
    ["without a signature", () => `${part({ alg: "none" })}.${part(claims)}.`],
    ["with an empty signature", () => `${part({ alg: "RS256", kid: "rsa" })}.${part(claims)}.`],
    ["of a shared secret", () => sign({}, { alg: "HS256", kid: "shared" }, Buffer.from("s".repeat(32)))],
    [
      "whose secret is the public key",
      () => sign({}, { alg: "HS256", kid: "rsa" }, Buffer.from(JSON.stringify(jwks.keys[0]))),
    ],
    ["of a key of another kind", () => sign({}, { alg: "ES256", kid: "rsa" }, ec.privateKey)],
    ["that is none", () => "a.b.c"],
    ["that is too long", () => sign({ x: "x".repeat(17_000) })],
  ])("%s", async (_, token) => {
    expect(await answerTo(`Bearer ${await token()}`)).toMatchObject({ status: 401, code: "auth.required" });
  });

  test.each([undefined, "", "Bearer", "Basic YTpi", "Token TOKEN", "Bearer TOKEN TOKEN"])(
    "in the header %s",
    async (header) => {
      const sent = header?.replaceAll("TOKEN", await sign());
      expect(await answerTo(sent)).toMatchObject({ status: 401, code: "auth.required" });
    },
  );
});

describe("a key set", () => {
  /** An identity provider whose responses the test sets. */
  async function provider() {
    const served = { set: jwks as object, status: 200, asked: 0 };
    const server = createServer((_, answer) => {
      served.asked++;
      answer.writeHead(served.status, { "content-type": "application/json" }).end(JSON.stringify(served.set));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    return { served, url: new URL(`http://127.0.0.1:${port}/jwks.json`) };
  }

  test("is fetched once for many tokens", async () => {
    const { served, url } = await provider();
    const auth = open({ jwks: url });
    const tokens = await Promise.all(["alice", "bob"].map((sub) => sign({ sub })));
    const answers = await Promise.all(tokens.map((token) => answerTo(`Bearer ${token}`, auth)));
    expect(answers).toMatchObject([{ identity: "alice" }, { identity: "bob" }]);
    expect(await answerTo(`Bearer ${tokens[0]}`, auth)).toMatchObject({ identity: "alice" });
    expect(served.asked).toBe(1);
    // A token with an unknown key does not cause a fetch each time either.
    for (let i = 0; i < 5; i++)
      expect(await answerTo(`Bearer ${await sign({}, { alg: "RS256", kid: `k${i}` })}`, auth)).toMatchObject({
        status: 401,
      });
    expect(served.asked).toBe(1);
  });

  test("that cannot be had is a failure of the server, which tells nobody of the token", async () => {
    const { served, url } = await provider();
    served.status = 500;
    expect(await answerTo(`Bearer ${await sign()}`, open({ jwks: url }))).toMatchObject({
      status: 503,
      code: "auth.unavailable",
    });
    served.status = 200;
    served.set = { keys: "none" };
    expect(await answerTo(`Bearer ${await sign()}`, open({ jwks: url }))).toMatchObject({
      status: 500,
      code: "auth.failed",
    });
  });

  test("that is none is refused at the start", async () => {
    await expect(open({ jwks: { keys: [7] } })).rejects.toThrow("auth.jwt.jwks is no JSON Web Key Set");
  });
});
