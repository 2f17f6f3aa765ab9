import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "@langchain/langgraph-sdk";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { expect, test } from "vitest";
import { createApp, graph, value } from "../../src/index.ts";
import { directory, serve } from "./support/server.ts";

const ISSUER = "https://id.example/";

const who = graph({
  state: { user: value(""), permissions: value<readonly string[]>([]) },
  nodes: {
    look: async (_, ctx) => {
      const { configurable } = ctx.config as { configurable: Record<string, never> };
      return {
        user: configurable["langgraph_auth_user_id"],
        permissions: configurable["langgraph_auth_permissions"],
      };
    },
  },
  edges: { start: "look" },
});

/** A server whose configuration names the key set in a file, and clients with tokens. */
async function open() {
  const home = await directory();
  const { privateKey, publicKey } = await generateKeyPair("RS256");
  await writeFile(join(home, "keys.json"), JSON.stringify({ keys: [await exportJWK(publicKey)] }));
  const config = join(home, "heddle.json");
  const jwt = { issuer: ISSUER, audience: "heddle", jwks: "./keys.json" };
  await writeFile(config, JSON.stringify({ graphs: {}, auth: { jwt } }));
  const { url } = await serve({ config, graphs: { who } });
  const connect = async (sub: string) => {
    const token = await new SignJWT({ scope: "read" })
      .setProtectedHeader({ alg: "RS256" })
      .setIssuer(ISSUER)
      .setAudience("heddle")
      .setSubject(sub)
      .setExpirationTime("1m")
      .sign(privateKey);
    return new Client({
      apiUrl: url,
      apiKey: null,
      defaultHeaders: { authorization: `Bearer ${token}` },
      callerOptions: { maxRetries: 0 },
    });
  };
  return { url, alice: await connect("alice"), bob: await connect("bob") };
}

const missing = { status: 404 };

test("each user of an identity provider sees what is the user's own", async () => {
  const { url, alice, bob } = await open();
  const thread = await alice.threads.create({ metadata: { owner: "bob", n: 1 } });
  expect(thread.metadata).toEqual({ owner: "alice", n: 1 });
  const { thread_id } = thread;
  expect(await alice.runs.wait(thread_id, "who", { input: {} })).toEqual({
    user: "alice",
    permissions: ["read"],
  });
  expect((await alice.threads.update(thread_id, { metadata: { owner: "bob" } })).metadata).toMatchObject({
    owner: "alice",
  });
  await expect(bob.threads.get(thread_id)).rejects.toMatchObject(missing);
  await expect(bob.runs.wait(thread_id, "who", { input: {}, ifNotExists: "create" })).rejects.toMatchObject(
    missing,
  );
  expect([await alice.threads.count(), await bob.threads.count()]).toEqual([1, 0]);

  // Default assistants belong to everybody, others to the user who created them.
  expect((await bob.assistants.search({ graphId: "who" })).map(({ metadata }) => metadata)).toEqual([
    { created_by: "system" },
  ]);
  const { assistant_id } = await alice.assistants.create({
    graphId: "who",
    metadata: { created_by: "system" },
  });
  await expect(bob.assistants.get(assistant_id)).rejects.toMatchObject(missing);
  await expect(bob.runs.wait(null, assistant_id, { input: {} })).rejects.toMatchObject(missing);
  const [shared] = await bob.assistants.search({ graphId: "who" });
  await expect(bob.assistants.update(shared?.assistant_id ?? "", { name: "x" })).rejects.toMatchObject(
    missing,
  );

  await alice.store.putItem(["notes"], "k", { a: 1 });
  expect((await alice.store.getItem(["notes"], "k"))?.namespace).toEqual(["user:alice", "notes"]);
  // The search returns names under which the items can be read.
  expect((await alice.store.getItem(["user:alice", "notes"], "k"))?.value).toEqual({ a: 1 });
  expect(await bob.store.getItem(["user:alice", "notes"], "k")).toBeNull();
  expect((await bob.store.searchItems([])).items).toEqual([]);
  expect((await bob.store.listNamespaces()).namespaces).toEqual([]);

  const cron = await alice.crons.create("who", { schedule: "0 0 1 1 *" });
  expect(cron).toMatchObject({ user_id: "alice", metadata: { owner: "alice" } });
  await expect(bob.crons.delete(cron.cron_id)).rejects.toMatchObject(missing);
  for (const headers of [{}, { authorization: "Bearer x" }])
    expect((await fetch(`${url}/threads`, { method: "POST", headers })).status).toBe(401);
});

test("a file without a key set is refused", async () => {
  const home = await directory();
  await writeFile(join(home, "keys.json"), "{}");
  const config = join(home, "heddle.json");
  const jwt = { issuer: ISSUER, audience: "heddle", jwks: "./keys.json" };
  await writeFile(config, JSON.stringify({ graphs: {}, auth: { jwt } }));
  await expect(createApp({ config })).rejects.toThrow("keys.json holds no key set");
  await writeFile(config, JSON.stringify({ graphs: {}, auth: { jwt: { ...jwt, jwks: "./none.json" } } }));
  await expect(createApp({ config })).rejects.toThrow("auth.jwt.jwks: ");
});
