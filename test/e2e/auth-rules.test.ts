import { Auth } from "@langchain/langgraph-sdk/auth";
import { describe, expect, test } from "vitest";
import type { AppOptions } from "../../src/app.ts";
import { graph, list, value } from "../../src/index.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { authenticate, clientsOf, headersOf, type Name } from "./support/auth.ts";
import type { Client } from "./support/clients.ts";
import { gated } from "./support/latches.ts";
import { serve } from "./support/server.ts";
import { Following } from "./support/wire.ts";

type AuthHandlers = NonNullable<AppOptions["auth"]>;

const echo = graph({
  state: { text: value(""), log: list<string>(), user: value<unknown>(null) },
  nodes: {
    say: async ({ text }, ctx) => {
      const { configurable } = ctx.config as { configurable: Record<string, unknown> };
      return { log: [text], user: configurable["langgraph_auth_user_id"] ?? null };
    },
  },
  edges: { start: "say" },
});

/** Refuses writes by users who lack the permission for them. */
const writers = ({ permissions }: { readonly permissions: readonly string[] }): boolean =>
  permissions.includes("write");

/** Adds these members to the metadata, in a handler. */
const add = (value: object, members: object): void => {
  const to = value as { metadata?: object | null };
  to.metadata = { ...to.metadata, ...members };
};

const ids = (found: readonly object[], name: string): unknown[] =>
  found.map((one) => (one as Record<string, unknown>)[name]).toSorted();

const refused = { status: 403 };
const missing = { status: 404 };

async function allMissing(asked: readonly Promise<unknown>[]): Promise<void> {
  const settled = await Promise.allSettled(asked);
  const statuses = settled.map((one) =>
    one.status === "rejected" ? (one.reason as { status: unknown }).status : one.value,
  );
  expect(statuses).toEqual(asked.map(() => 404));
}

describe.each(clientsOf)("three users, over %s:", (_, connect) => {
  async function users(auth: Auth, options: AppOptions = {}) {
    const { url, complaints } = await serve({
      graphs: { echo },
      auth: auth as unknown as AuthHandlers,
      ...options,
    });
    const [alice, bob, carol] = [connect(url, "alice"), connect(url, "bob"), connect(url, "carol")];
    return { url, complaints, alice, bob, carol };
  }

  test("a state that a user has changed names the user, as those of the user's runs do", async () => {
    const { alice, bob } = await users(new Auth().authenticate(authenticate));
    const { thread_id } = await alice.threads.create();
    await alice.runs.wait(thread_id, "echo", { input: { text: "tea" } });
    await bob.threads.updateState(thread_id, { values: { text: "coffee" } });
    const made = (await alice.threads.getHistory(thread_id)).map(({ metadata }) => [
      metadata?.source,
      (metadata as Record<string, unknown>)["user_id"],
      (metadata as Record<string, unknown>)["langgraph_auth_user_id"],
    ]);
    expect(made).toEqual([
      ["update", "bob", "bob"],
      ["loop", "alice", "alice"],
      ["loop", "alice", "alice"],
      ["input", "alice", "alice"],
    ]);
  });

  test("threads that are shared with members; Carol may not delete", async () => {
    const auth = new Auth()
      .authenticate(authenticate)
      .on("threads", ({ user }) => ({ members: { $contains: user.identity } }))
      .on("threads:create", ({ value: asked, user }) => {
        add(asked, {
          members: [user.identity, ...((asked.metadata?.["with"] as string[] | undefined) ?? [])],
        });
      })
      .on(
        "threads:delete",
        ({ permissions, user }) => writers({ permissions }) && { members: { $contains: user.identity } },
      );
    const { alice, bob, carol } = await users(auth);
    const { thread_id: shared } = await alice.threads.create({ metadata: { with: ["carol"], n: 1 } });
    const { thread_id: own } = await alice.threads.create({ metadata: { n: 2 } });
    await alice.runs.wait(shared, "echo", { input: { text: "tea" } });

    expect(ids(await alice.threads.search(), "thread_id")).toEqual([shared, own].toSorted());
    expect(ids(await carol.threads.search(), "thread_id")).toEqual([shared]);
    expect(await bob.threads.search()).toEqual([]);
    expect(await Promise.all([alice, bob, carol].map((one) => one.threads.count()))).toEqual([2, 0, 1]);
    expect(await carol.threads.count({ metadata: { n: 2 } })).toBe(0);

    expect((await carol.threads.get(shared)).values).toMatchObject({ log: ["tea"] });
    expect((await carol.threads.getState<{ log: string[] }>(shared)).values.log).toEqual(["tea"]);
    expect((await carol.threads.getHistory(shared)).length).toBeGreaterThan(0);
    expect(await carol.threads.update(shared, { metadata: { seen: true } })).toMatchObject({
      metadata: { seen: true, n: 1 },
    });
    await expect(carol.threads.delete(shared)).rejects.toMatchObject(refused);
    await expect(bob.threads.delete(shared)).rejects.toMatchObject(missing);
    await allMissing([
      bob.threads.get(shared),
      bob.threads.getState(shared),
      bob.threads.getHistory(shared),
      bob.threads.update(shared, { metadata: {} }),
      bob.threads.updateState(shared, { values: { text: "x" } }),
      bob.threads.copy(shared),
      bob.runs.list(shared),
    ]);
    // A copy belongs to the user who made it: the handler of `threads:create` has seen its metadata.
    const copied = await carol.threads.copy(shared);
    expect(copied).toMatchObject({ metadata: { members: ["carol", "carol"], n: 1 } });
    await alice.threads.delete(shared);
    await expect(carol.threads.get(shared)).rejects.toMatchObject(missing);
  });

  test("who may no longer read a thread sees none of its later runs, also in a stream that is open", async () => {
    const auth = new Auth()
      .authenticate(authenticate)
      .on("threads", ({ user }) => ({ members: { $contains: user.identity } }));
    const { url, alice } = await users(auth);
    const { thread_id } = await alice.threads.create({ metadata: { members: ["alice", "carol"] } });
    const follow = async (name: Name, path: string, init: RequestInit = {}) => {
      const headers = { ...headersOf(name), "content-type": "application/json" };
      return new Following(await fetch(`${url}/threads/${thread_id}/${path}`, { ...init, headers }));
    };
    const v2 = { method: "POST", body: JSON.stringify({ channels: ["values"] }) };
    const carols = [await follow("carol", "stream"), await follow("carol", "stream/events", v2)];
    const alices = [await follow("alice", "stream"), await follow("alice", "stream/events", v2)];
    const say = (text: string) => alice.runs.wait(thread_id, "echo", { input: { text } });
    await say("first");
    for (const stream of [...carols, ...alices]) await stream.until("first");
    await alice.threads.update(thread_id, { metadata: { members: ["alice"] } });
    await say("second");
    for (const stream of alices) await stream.until("second");
    await alice.threads.update(thread_id, { metadata: { members: ["alice", "carol"] } });
    await say("third");
    for (const stream of carols) {
      await stream.until('"third"');
      expect(stream.text).not.toContain('{"said":"second"}');
    }
  });

  test("what a handler removes from a request stays removed", async () => {
    const auth = new Auth().authenticate(authenticate).on("*", ({ value: asked }) => {
      for (const name of ["metadata", "description", "multitask_strategy"] as const)
        delete (asked as { [member: string]: unknown })[name];
    });
    const { alice } = await users(auth);
    const metadata = { secret: true };
    const gone = { metadata: expect.not.objectContaining(metadata) as unknown };
    const { thread_id } = await alice.threads.create({ metadata });
    expect(await alice.threads.update(thread_id, { metadata })).toMatchObject(gone);
    const run = { input: { text: "tea" }, metadata, multitaskStrategy: "enqueue" } as const;
    expect(await alice.runs.create(thread_id, "echo", run)).toMatchObject({
      ...gone,
      multitask_strategy: "reject",
    });
    const assistant = { graphId: "echo", metadata, name: "kept", description: "a secret" };
    const { assistant_id } = await alice.assistants.create(assistant);
    expect(await alice.assistants.get(assistant_id)).toMatchObject({
      ...gone,
      name: "kept",
      description: null,
    });
    const cron = { schedule: "0 0 1 1 *", input: { text: "tea" }, metadata };
    await alice.crons.create("echo", cron);
    expect(await alice.crons.search()).toMatchObject([{ ...gone, schedule: cron.schedule }]);
  });

  test("runs, also on a thread that they make; Carol may start none", async () => {
    const auth = new Auth()
      .authenticate(authenticate)
      .on("*", ({ user }) => ({ owner: user.identity }))
      .on("threads:create", ({ value: asked, user }) => add(asked, { owner: user.identity }))
      .on("threads:create_run", ({ value: asked, user, permissions }) => {
        if (!writers({ permissions })) return false;
        add(asked, { owner: user.identity });
        const given = asked.kwargs["input"] as { text: string };
        given.text += "!";
        return { owner: user.identity };
      });
    const { alice, bob, carol } = await users(auth);
    const thread = crypto.randomUUID();
    const more = { input: { text: "tea" }, ifNotExists: "create" } as const;
    expect(await alice.runs.wait(thread, "echo", more)).toMatchObject({ log: ["tea!"], user: "alice" });
    expect((await alice.threads.get(thread)).metadata).toMatchObject({ owner: "alice" });
    const [run] = await alice.runs.list(thread);
    expect(run?.metadata).toMatchObject({ owner: "alice" });
    const run_id = run?.run_id ?? "";

    await expect(carol.runs.create(thread, "echo", more)).rejects.toMatchObject(refused);
    await expect(carol.runs.wait(null, "echo", { input: { text: "" } })).rejects.toMatchObject(refused);
    const hers = await carol.threads.create();
    await expect(carol.runs.wait(hers.thread_id, "echo", more)).rejects.toMatchObject(refused);

    await allMissing([
      bob.runs.wait(thread, "echo", more),
      bob.runs.create(thread, "echo", { ...more, multitaskStrategy: "rollback" }),
      bob.runs.get(thread, run_id),
      bob.runs.join(thread, run_id),
      bob.runs.cancel(thread, run_id),
      bob.runs.delete(thread, run_id),
      bob.runs.list(thread),
      bob.runs.joinStream(thread, run_id).next(),
    ]);
    expect(await bob.runs.wait(null, "echo", { input: { text: "own" } })).toMatchObject({
      log: ["own!"],
      user: "bob",
    });
    const events: string[] = [];
    for await (const { event } of alice.runs.joinStream(thread, run_id)) events.push(event);
    expect(events).toContain("values");
    await alice.runs.delete(thread, run_id);
    await expect(alice.runs.get(thread, run_id)).rejects.toMatchObject(missing);
  });

  test("what a filter says of all that a user has holds for what the user makes and changes", async () => {
    const auth = new Auth()
      .authenticate(authenticate)
      .on("*", ({ user }) => ({ owner: user.identity, team: { $eq: "red" } }))
      .on("store", () => true);
    const { alice, bob } = await users(auth);
    const [own, given] = [
      { owner: "alice", team: "red" },
      { owner: "bob", n: 1 },
    ];
    const { thread_id, metadata } = await alice.threads.create({ metadata: given });
    expect(metadata).toEqual({ ...own, n: 1 });
    expect((await alice.threads.update(thread_id, { metadata: { owner: "bob" } })).metadata).toEqual({
      ...own,
      n: 1,
    });
    expect((await alice.threads.copy(thread_id)).metadata).toMatchObject(own);
    const made = crypto.randomUUID();
    await alice.runs.wait(made, "echo", { input: { text: "" }, ifNotExists: "create", metadata: given });
    expect((await alice.threads.get(made)).metadata).toMatchObject(own);
    expect((await alice.runs.list(made))[0]?.metadata).toMatchObject(own);
    const { assistant_id } = await alice.assistants.create({ graphId: "echo", metadata: given });
    expect((await alice.assistants.update(assistant_id, { metadata: given })).metadata).toMatchObject(own);
    const { cron_id } = await alice.crons.create("echo", { schedule: "0 0 1 1 *", metadata: given });
    expect(await alice.crons.update(cron_id, { metadata: given })).toMatchObject({ metadata: own });
    expect([await bob.threads.search(), await bob.assistants.search(), await bob.crons.search()]).toEqual([
      [],
      [],
      [],
    ]);
  });

  test("a bulk cancellation reaches the user's own runs alone", async () => {
    const { held, waits } = gated();
    const auth = new Auth().authenticate(authenticate).on("*", ({ value: asked, user }) => {
      if ("metadata" in asked) add(asked, { owner: user.identity });
      return { owner: user.identity };
    });
    const { url, alice, bob } = await users(auth, { graphs: { held } });
    const begun = async (client: Client, name: string) => {
      const { thread_id } = await client.threads.create();
      const { run_id } = await client.runs.create(thread_id, "held", { input: { name } });
      await waits(name);
      return { thread_id, run_id, client };
    };
    const runs = [await begun(alice, "a"), await begun(bob, "b")];
    // Only one major version of the SDK has a method for it.
    const cancel = async (name: Name, body: object) => {
      const headers = { ...headersOf(name), "content-type": "application/json" };
      const answer = await fetch(`${url}/runs/cancel`, {
        method: "POST",
        headers,
        body: JSON.stringify(body),
      });
      return answer.status;
    };
    const statuses = () =>
      Promise.all(
        runs.map(async ({ client, thread_id, run_id }) => (await client.runs.get(thread_id, run_id)).status),
      );
    expect(await cancel("bob", { status: "all" })).toBe(204);
    await expect.poll(statuses).toEqual(["running", "interrupted"]);
    const named = { thread_id: runs[0]?.thread_id, run_ids: [runs[0]?.run_id] };
    expect(await cancel("bob", named)).toBe(404);
    expect(await statuses()).toEqual(["running", "interrupted"]);
    expect(await cancel("alice", named)).toBe(204);
    await expect.poll(statuses).toEqual(["interrupted", "interrupted"]);
  });

  test("who may only read follows a run, and does not end it by leaving", async () => {
    const { held, waits, open } = gated();
    const auth = new Auth()
      .authenticate(authenticate)
      .on("threads:update", ({ permissions }) => writers({ permissions }));
    const { url, alice } = await users(auth, { graphs: { held } });
    const { thread_id } = await alice.threads.create();
    const { run_id } = await alice.runs.create(thread_id, "held", { input: { name: "a" } });
    await waits("a");
    const left = new AbortController();
    const followed = await fetch(`${url}/threads/${thread_id}/runs/${run_id}/stream?cancel_on_disconnect=1`, {
      headers: headersOf("carol"),
      signal: left.signal,
    });
    expect(followed.status).toBe(200);
    left.abort();
    const cancel = `${url}/threads/${thread_id}/runs/${run_id}/cancel`;
    expect((await fetch(cancel, { method: "POST", headers: headersOf("carol") })).status).toBe(403);
    // A cancellation would have happened before this.
    await alice.threads.getState(thread_id);
    expect((await alice.runs.get(thread_id, run_id)).status).toBe("running");
    open("a");
    expect(await alice.runs.join(thread_id, run_id)).toMatchObject({ log: ["a began", "a ended"] });
  });

  test("assistants, which only who may read them may run; Carol may create none", async () => {
    const auth = new Auth()
      .authenticate(authenticate)
      .on(
        "assistants",
        ({ user }) =>
          ({ $or: [{ owner: user.identity }, { created_by: "system" }, { public: true }] }) as never,
      )
      .on("assistants:create", ({ value: asked, user, permissions }) => {
        add(asked, { owner: user.identity });
        return writers({ permissions });
      })
      .on("assistants:update", ({ value: asked, user }) => {
        add(asked, { owner: user.identity });
        return { owner: user.identity };
      })
      .on("assistants:delete", ({ user }) => ({ owner: user.identity }));
    const { alice, bob, carol } = await users(auth);
    const made = await alice.assistants.create({ graphId: "echo", name: "hers", config: { tags: ["a"] } });
    expect(made.metadata).toEqual({ owner: "alice" });
    const { assistant_id } = made;
    await expect(carol.assistants.create({ graphId: "echo" })).rejects.toMatchObject(refused);

    const shared = await carol.assistants.search({ graphId: "echo" });
    expect(shared.map(({ metadata }) => metadata)).toEqual([{ created_by: "system" }]);
    expect(await Promise.all([alice, bob].map((one) => one.assistants.count({ graphId: "echo" })))).toEqual([
      2, 1,
    ]);
    await allMissing([
      bob.assistants.get(assistant_id),
      bob.assistants.getGraph(assistant_id),
      bob.assistants.getSchemas(assistant_id),
      bob.assistants.getVersions(assistant_id),
      bob.assistants.update(assistant_id, { name: "his" }),
      bob.assistants.setLatest(assistant_id, 1),
      bob.assistants.delete(assistant_id),
      bob.runs.wait(null, assistant_id, { input: {} }),
      bob.crons.create(assistant_id, { schedule: "0 0 1 1 *" }),
    ]);
    // Default assistants can be run by everybody, and here changed by nobody.
    const [{ assistant_id: system } = { assistant_id: "" }] = shared;
    await expect(bob.assistants.update(system, { name: "his" })).rejects.toMatchObject(missing);
    expect(await carol.runs.wait(null, "echo", { input: { text: "x" } })).toMatchObject({ log: ["x"] });
    expect(await alice.runs.wait(null, assistant_id, { input: { text: "y" } })).toMatchObject({ log: ["y"] });
    // An assistant that all may read and run, and only its owner may change and delete.
    const common = await alice.assistants.create({ graphId: "echo", metadata: { public: true } });
    const { assistant_id: open } = common;
    expect((await bob.assistants.get(open)).metadata).toEqual({ owner: "alice", public: true });
    expect(await bob.runs.wait(null, open, { input: { text: "z" } })).toMatchObject({
      log: ["z"],
      user: "bob",
    });
    await allMissing([
      bob.assistants.update(open, { name: "his" }),
      bob.assistants.setLatest(open, 1),
      bob.assistants.delete(open),
    ]);
    expect(await alice.assistants.get(open)).toEqual(common);
    // A client cannot remove metadata that a handler has set.
    const changed = await alice.assistants.update(assistant_id, { metadata: { owner: "bob" } });
    expect(changed.metadata).toEqual({ owner: "alice" });
    await alice.assistants.delete(assistant_id);
  });

  test("crons, whose runs are their user's; Carol may create none", async () => {
    const now = systemClock.now();
    // Both crons are created before the minute begins, even on a busy machine.
    const shift = (60_000 - (now % 60_000) - 1_500 + 60_000) % 60_000;
    const clock = { now: () => systemClock.now() + shift, mono: () => systemClock.mono() };
    const auth = new Auth()
      .authenticate(authenticate)
      .on("*", ({ user }) => ({ owner: user.identity }))
      .on("threads:create", ({ value: asked, user }) => add(asked, { owner: user.identity }))
      .on("threads:create_run", ({ value: asked, user }) => {
        add(asked, { owner: user.identity });
        return user.identity === "bob" ? false : { owner: user.identity };
      })
      .on("crons:create", ({ value: asked, user, permissions }) => {
        add(asked, { owner: user.identity });
        return writers({ permissions });
      });
    const { alice, bob, carol, complaints } = await users(auth, { clock });
    const { thread_id } = await alice.threads.create();
    const cron = await alice.crons.createForThread(thread_id, "echo", {
      schedule: "* * * * *",
      input: { text: "on time" },
    });
    const { cron_id } = cron;
    expect(cron).toMatchObject({ user_id: "alice", metadata: { owner: "alice" } });
    await expect(carol.crons.create("echo", { schedule: "* * * * *" })).rejects.toMatchObject(refused);
    await expect(
      bob.crons.createForThread(thread_id, "echo", { schedule: "* * * * *" }),
    ).rejects.toMatchObject(missing);
    await expect(bob.crons.update(cron_id, { enabled: false })).rejects.toMatchObject(missing);
    await expect(bob.crons.delete(cron_id)).rejects.toMatchObject(missing);
    expect(await Promise.all([alice, bob].map((one) => one.crons.count()))).toEqual([1, 0]);
    expect(ids(await alice.crons.search(), "cron_id")).toEqual([cron_id]);
    expect(await bob.crons.search()).toEqual([]);
    const denied = await bob.crons.create("echo", { schedule: "* * * * *" });

    const values = async () => (await alice.threads.getState<object>(thread_id)).values;
    await expect.poll(values, { timeout: 5_000 }).toMatchObject({ log: ["on time"], user: "alice" });
    expect(await alice.runs.list(thread_id)).toHaveLength(1);
    // A run that the rules forbid at that time is skipped; the cron stays.
    await expect
      .poll(() => complaints.join(""))
      .toContain(`"cron":"${denied.cron_id}","code":"auth.forbidden"`);
    expect(ids(await bob.crons.search(), "cron_id")).toEqual([denied.cron_id]);
    await alice.crons.delete(cron_id);
  });

  test("the store, in which each has a part; Carol may put nothing", async () => {
    const auth = new Auth()
      .authenticate(authenticate)
      .on("store", ({ value: asked, user }) => {
        asked.namespace = [user.identity, ...(asked.namespace ?? [])];
      })
      .on("store:put", ({ value: asked, user, permissions }) => {
        asked.namespace = [user.identity, ...asked.namespace];
        return writers({ permissions });
      });
    const { alice, bob, carol } = await users(auth);
    await alice.store.putItem(["notes"], "k", { of: "alice" });
    await bob.store.putItem(["notes"], "k", { of: "bob" });
    await expect(carol.store.putItem(["notes"], "k", {})).rejects.toMatchObject(refused);
    expect(await alice.store.getItem(["notes"], "k")).toMatchObject({
      namespace: ["alice", "notes"],
      value: { of: "alice" },
    });
    expect(await carol.store.getItem(["notes"], "k")).toBeNull();
    // Names that the users choose lie below their own namespace.
    expect(await bob.store.getItem(["alice", "notes"], "k")).toBeNull();
    const found = async (client: Client) =>
      (await client.store.searchItems([])).items.map((item) => item.value);
    expect(await Promise.all([alice, bob, carol].map(found))).toEqual([
      [{ of: "alice" }],
      [{ of: "bob" }],
      [],
    ]);
    expect((await alice.store.listNamespaces()).namespaces).toEqual([["alice", "notes"]]);
    expect((await alice.store.listNamespaces({ prefix: ["bob"] })).namespaces).toEqual([]);
    await bob.store.deleteItem(["notes"], "k");
    expect(await Promise.all([alice, bob].map(found))).toEqual([[{ of: "alice" }], []]);
  });

  test("the store, of which a filter shows a part", async () => {
    const auth = new Auth()
      .authenticate(authenticate)
      .on("store", ({ user }) => ({ readers: { $contains: user.identity } }))
      .on("store:list_namespaces", ({ user }) => ({ namespace: { $contains: user.identity } }));
    const { alice, bob, carol } = await users(auth);
    await alice.store.putItem(["team"], "a", { readers: ["alice", "carol"], n: 1 });
    await alice.store.putItem(["team"], "b", { readers: ["alice"], n: 2 });
    await bob.store.putItem(["team", "bob"], "c", { readers: ["bob"], n: 3 });
    // A write is refused if the user cannot read the item before or after it.
    await expect(bob.store.putItem(["team"], "d", { readers: ["alice"] })).rejects.toMatchObject(refused);
    await expect(bob.store.putItem(["team"], "a", { readers: ["bob"] })).rejects.toMatchObject(missing);
    await expect(bob.store.deleteItem(["team"], "a")).rejects.toMatchObject(missing);
    expect(await bob.store.getItem(["team"], "a")).toBeNull();
    expect((await carol.store.getItem(["team"], "a"))?.value).toMatchObject({ n: 1 });
    const found = async (client: Client) =>
      (await client.store.searchItems(["team"])).items.map((item) => item.value["n"]).toSorted();
    expect(await Promise.all([alice, bob, carol].map(found))).toEqual([[1, 2], [3], [1]]);
    // Pages are full: items that are left out do not count.
    expect((await carol.store.searchItems(["team"], { limit: 1 })).items).toHaveLength(1);
    expect((await carol.store.searchItems(["team"], { limit: 1, offset: 1 })).items).toEqual([]);
    expect((await bob.store.listNamespaces()).namespaces).toEqual([["team", "bob"]]);
    expect((await carol.store.listNamespaces()).namespaces).toEqual([]);
  });
});
