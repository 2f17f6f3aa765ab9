import { describe, expect, test } from "vitest";
import { graph, list, send, value } from "../../src/index.ts";
import { type Client, lines } from "./support/clients.ts";
import { serve } from "./support/server.ts";
import { NOBODY } from "./support/wire.ts";

/** Graphs nested three levels deep, which record what has run; the middle one asks on request. */
function nested() {
  const ran: string[] = [];
  const note = (name: string) => async () => {
    ran.push(name);
    return { log: [name] };
  };
  const leaf = graph({
    state: { log: list<string>(), own: value("unset") },
    nodes: {
      x: async () => {
        ran.push("x");
        return { log: ["x"], own: "seen by x" };
      },
      y: async ({ own }) => {
        ran.push("y");
        return { log: [`y ${own}`] };
      },
    },
    edges: { start: "x", x: "y" },
  });
  const middle = graph({
    state: { log: list<string>(), ask: value(false) },
    nodes: {
      a: note("a"),
      b: async ({ ask }, ctx) => {
        ran.push("b");
        return { log: ask ? [`b ${String(await ctx.interrupt("b?"))}`] : ["b"] };
      },
      leaf,
      c: note("c"),
    },
    edges: { start: "a", a: "b", b: "leaf", leaf: "c" },
  });
  const outer = graph({
    state: { log: list<string>(), ask: value(false) },
    nodes: { pre: note("pre"), middle, beside: note("beside"), post: note("post") },
    edges: { start: "pre", pre: ["middle", "beside"], middle: "post" },
  });
  const each = graph({
    state: { n: value(0), found: list<string>() },
    nodes: {
      one: async ({ n }) => {
        ran.push(`one ${n}`);
        return { found: [`one ${n}`] };
      },
      two: async ({ n }) => {
        ran.push(`two ${n}`);
        return { found: [`two ${n}`] };
      },
    },
    edges: { start: "one", one: "two" },
  });
  const fan = graph({
    state: { found: list<string>() },
    nodes: { spread: async () => [1, 2, 3].map((n) => send("each", { n })), each },
    edges: { start: "spread" },
  });
  return { graphs: { outer, fan }, ran };
}

type State = Awaited<ReturnType<Client["threads"]["getState"]>>;

describe.each(lines)("runs from a subgraph's checkpoint over %s", (_, connect) => {
  const start = async (name: "outer" | "fan", input: object) => {
    const { graphs, ran } = nested();
    const client = connect((await serve({ graphs })).url);
    const { thread_id } = await client.threads.create();
    const wait = (options: object) => client.runs.wait(thread_id, name, options);
    const first = await wait({ input });
    /** The states of the subgraph of this node, newest first. */
    const within = async (node: string, above: Partial<State["checkpoint"]> = {}, nth = 0) => {
      const history = await client.threads.getHistory(thread_id, { limit: 100, checkpoint: above as never });
      const tasks = history.flatMap(({ tasks: all }) => all.filter((task) => task.name === node));
      const checkpoint_ns = String(tasks[nth]?.checkpoint?.checkpoint_ns);
      return client.threads.getHistory(thread_id, { limit: 100, checkpoint: { checkpoint_ns } as never });
    };
    const at = (states: readonly State[], next: string) =>
      states.find((state) => state.next.join() === next) as State;
    const fromHere = (): readonly string[] => ran.splice(0);
    fromHere();
    return { client, thread_id, wait, first, within, at, fromHere };
  };
  test("its place names the checkpoints above it, and going on there runs what comes after it", async () => {
    const { client, thread_id, wait, first, within, at, fromHere } = await start("outer", {});
    expect(first).toMatchObject({
      log: expect.arrayContaining(["b", "y seen by x", "c", "post"]) as unknown,
    });
    const place = at(await within("middle"), "leaf").checkpoint;
    const root = (await client.threads.getHistory(thread_id)).find(({ next }) => next.includes("middle"));
    expect(place.checkpoint_map).toEqual({
      "": root?.checkpoint.checkpoint_id,
      [place.checkpoint_ns]: place.checkpoint_id,
    });
    const before = await client.threads.getState(thread_id);
    expect(await wait({ input: null, checkpoint: place })).toEqual(first);
    // Nodes that run in parallel with the subgraph belong to the same step.
    expect([...fromHere()].sort()).toEqual(["beside", "c", "post", "x", "y"]);
    const history = await client.threads.getHistory(thread_id);
    expect(history.map(({ metadata }) => metadata?.source)).toContain("fork");
    expect(history.map(({ checkpoint }) => checkpoint.checkpoint_id)).toContain(
      before.checkpoint.checkpoint_id,
    );
    // On the new branch, the subgraph has a history of its own, which begins there.
    const [born, forked] = (await within("middle")).reverse();
    expect(forked?.next).toEqual(["c"]);
    expect(born).toMatchObject({ next: ["leaf"], metadata: { source: "fork" }, parent_checkpoint: null });
    expect(born?.values).toEqual(at(await within("middle", {}, 1), "leaf").values);
  });

  test("by its namespace and id alone, and by its latest", async () => {
    const { wait, first, within, at, fromHere } = await start("outer", {});
    const { checkpoint_ns, checkpoint_id } = at(await within("middle"), "c").checkpoint;
    expect(await wait({ input: null, checkpoint: { checkpoint_ns, checkpoint_id } })).toEqual(first);
    expect([...fromHere()].sort()).toEqual(["beside", "c", "post"]);
    const configurable = { checkpoint_ns, checkpoint_id };
    expect(await wait({ input: null, config: { configurable } })).toEqual(first);
    expect([...fromHere()].sort()).toEqual(["beside", "c", "post"]);
    expect(await wait({ input: null, checkpoint: { checkpoint_ns } })).toEqual(first);
    expect([...fromHere()].sort()).toEqual(["beside", "post"]);
  });

  test("also two levels down, and where the subgraph's input waits to be applied", async () => {
    const { wait, first, within, at, fromHere } = await start("outer", {});
    const middle = at(await within("middle"), "leaf");
    const leaf = await within("leaf", middle.checkpoint);
    expect(await wait({ input: null, checkpoint: at(leaf, "y").checkpoint })).toEqual(first);
    expect([...fromHere()].sort()).toEqual(["beside", "c", "post", "y"]);
    expect(await wait({ input: null, checkpoint: at(leaf, "__start__").checkpoint })).toEqual(first);
    expect([...fromHere()].sort()).toEqual(["beside", "c", "post", "x", "y"]);
  });

  test("one of those that `send` has called; the others begin anew", async () => {
    const { wait, first, within, at, fromHere } = await start("fan", {});
    const second = at(await within("each", {}, 1), "two");
    expect(second.values).toMatchObject({ n: 2 });
    expect(await wait({ input: null, checkpoint: second.checkpoint })).toEqual(first);
    expect([...fromHere()].sort()).toEqual(["one 1", "one 3", "two 1", "two 2", "two 3"]);
  });

  test("a question that was answered there is asked again; an answer goes to where it waits", async () => {
    const { client, thread_id, wait, within, at } = await start("outer", { ask: true });
    const waiting = at(await within("middle"), "b").checkpoint;
    const older = at(await within("middle"), "a").checkpoint;
    await expect(wait({ command: { resume: "no" }, checkpoint: older })).rejects.toMatchObject({
      status: 422,
      message: expect.stringContaining("command.resume"),
    });
    expect(await wait({ command: { resume: "yes" }, checkpoint: waiting })).toMatchObject({
      log: expect.arrayContaining(["b yes", "post"]),
    });
    expect(await wait({ input: null, checkpoint: waiting })).toMatchObject({
      __interrupt__: [{ value: "b?" }],
    });
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "interrupted" });
    const { log } = (await wait({ command: { resume: "no" } })) as { log: string[] };
    expect(log).toContain("b no");
    expect(log).not.toContain("b yes");
  });

  test("a changed state of the subgraph is gone on from, on its branch", async () => {
    const { client, thread_id, wait, within, at } = await start("outer", { ask: true });
    const { checkpoint_ns } = at(await within("middle"), "b").checkpoint;
    await client.threads.updateState(thread_id, {
      values: { log: ["b by hand"] },
      asNode: "b",
      checkpoint: { checkpoint_ns } as never,
    });
    const changed = (await within("middle"))[0] as State;
    expect(changed.metadata).toMatchObject({ source: "update" });
    await wait({ input: { log: ["other"] } });
    const { log } = (await wait({ input: null, checkpoint: changed.checkpoint })) as { log: string[] };
    expect(log).toEqual(expect.arrayContaining(["b by hand", "y seen by x", "post"]));
    expect(log).not.toContain("other");
  });

  test("the place is the run's alone, and is kept whole with it", async () => {
    const { client, thread_id, wait, within, at } = await start("outer", {});
    const { checkpoint_ns, checkpoint_id, checkpoint_map } = at(await within("middle"), "c").checkpoint;
    await wait({ input: null, checkpoint: { checkpoint_ns, checkpoint_id } });
    const [run] = await client.runs.list(thread_id);
    expect(run).toMatchObject({
      kwargs: { config: { configurable: { checkpoint_ns, checkpoint_id, checkpoint_map } } },
    });
    expect((await client.threads.get(thread_id)).config).toEqual({});
    const state = await client.threads.getState(thread_id);
    for (const name of ["checkpoint_ns", "checkpoint_id", "checkpoint_map"]) {
      expect(state.metadata).not.toHaveProperty(name);
    }
  });

  test("places that are not there are refused", async () => {
    const { client, thread_id, wait, within, at } = await start("outer", {});
    const { checkpoint_ns, checkpoint_id } = at(await within("middle"), "c").checkpoint;
    const end = (await client.threads.getState(thread_id)).checkpoint.checkpoint_id as string;
    const table: readonly (readonly [object, number])[] = [
      [{ checkpoint_ns, checkpoint_id: NOBODY }, 404],
      [{ checkpoint_ns: `middle:${NOBODY}` }, 404],
      [{ checkpoint_ns: "__proto__", checkpoint_id }, 404],
      [{ checkpoint_ns, checkpoint_id, checkpoint_map: { "": NOBODY } }, 404],
      // The subgraph did not continue from its last checkpoint.
      [{ checkpoint_ns, checkpoint_id, checkpoint_map: { "": end } }, 422],
      [{ checkpoint_ns, checkpoint_id, checkpoint_map: { "": "x" } }, 422],
    ];
    for (const [checkpoint, status] of table) {
      await expect(wait({ input: null, checkpoint })).rejects.toMatchObject({ status });
    }
    expect((await client.threads.getState(thread_id)).checkpoint.checkpoint_id).toBe(end);
  });
});
