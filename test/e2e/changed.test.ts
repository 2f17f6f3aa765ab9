import { describe, expect, test } from "vitest";
import { z } from "zod";
import { graph, list } from "../../src/index.ts";
import type { Ctx } from "../../src/index.ts";
import { lines } from "./support/clients.ts";
import { differs } from "./support/suite-variant.ts";
import { directory, serve } from "./support/server.ts";

const says = (word: string) => async () => ({ log: [word] });
const ask = async (_: unknown, ctx: Ctx) => ({ log: [String(await ctx.interrupt("send it?"))] });

const edges = { start: "begin", begin: "ask", ask: "end" } as const;
const log = list<string>();
const before = graph({
  state: { total: z.number().default(5), log },
  nodes: { begin: says("began"), ask, end: says("end") },
  edges,
});

const renamedNodes = { begin: says("began"), approve: ask, end: says("end") };
const renamedEdges = { start: "begin", begin: "approve", approve: "end" } as const;
/** The node and the key have other names, and the key is of another kind. */
const renamed = graph({
  state: { sum: z.string().default("none"), log },
  nodes: renamedNodes,
  edges: renamedEdges,
});
const retyped = {
  state: { total: z.string(), log },
  nodes: { begin: says("began"), ask, end: says("end") },
  edges,
};
const migrating = graph({
  ...retyped,
  migrate: (state) => ({ ...state, total: `${String(state["total"])} in all` }),
});

// Only Heddle's own graphs know their structure.
describe.skipIf(differs("graphs that have changed")).each(lines)(
  "a graph that changes between two starts of the server, over %s",
  (_, connect) => {
    /** A thread that waits for an answer in the original graph, and a server with a changed graph for it. */
    async function restarted(changed: object) {
      const data = await directory();
      const first = await serve({ data, graphs: { g: before } });
      const one = connect(first.url);
      const { thread_id } = await one.threads.create();
      await one.runs.wait(thread_id, "g", { input: {} });
      const asked = await one.threads.getState(thread_id);
      await first.close();
      const { url } = await serve({ data, graphs: { g: changed as typeof before } });
      const client = connect(url);
      const wait = (payload: object) => client.runs.wait(thread_id, "g", { raiseError: false, ...payload });
      return { client, thread_id, asked, wait };
    }

    test("where it does not fit, the run ends with what is missing; state and question are kept", async () => {
      const { client, thread_id, asked, wait } = await restarted(renamed);
      const answer = await wait({ command: { resume: "yes" } });
      expect(answer).toMatchObject({ __error__: { error: "GraphChangedError" } });
      expect(JSON.stringify(answer)).toContain(
        'it waits at the node \\"ask\\", which is gone; the nodes are begin, approve, end',
      );
      const state = await client.threads.getState(thread_id);
      expect(state).toMatchObject({ values: asked.values, next: asked.next, checkpoint: asked.checkpoint });
      expect(state.tasks[0]?.interrupts).toEqual(asked.tasks[0]?.interrupts);
      expect(await client.threads.get(thread_id)).toMatchObject({ status: "interrupted" });
      const [run] = await client.runs.list(thread_id);
      expect(run).toMatchObject({ status: "error" });
    });

    test("command.goto mends it", async () => {
      const { client, thread_id, wait } = await restarted(renamed);
      await wait({ command: { resume: "yes" } });
      expect(await wait({ command: { goto: "approve" } })).toMatchObject({
        __interrupt__: [{ value: "send it?" }],
      });
      expect(await wait({ command: { resume: "yes" } })).toEqual({
        total: 5,
        sum: "none",
        log: ["began", "yes", "end"],
      });
      const history = await client.threads.getState(thread_id);
      expect(history.next).toEqual([]);
    });

    test("an update of the state mends it: as a node that is there, with values that fit", async () => {
      const { client, thread_id, wait } = await restarted(
        graph({ ...retyped, nodes: renamedNodes, edges: renamedEdges }),
      );
      await wait({ command: { resume: "yes" } });
      const update = (values: object) => client.threads.updateState(thread_id, { values, asNode: "begin" });
      // All of the update is applied, or nothing.
      await expect(update({ log: [] })).rejects.toMatchObject({
        status: 422,
        message: expect.stringContaining("state.total"),
      });
      await update({ total: "five" });
      expect(await client.threads.getState(thread_id)).toMatchObject({
        values: { total: "five", log: ["began"] },
        next: ["approve"],
      });
      expect(await wait({ input: null })).toMatchObject({ __interrupt__: [{ value: "send it?" }] });
      expect(await wait({ command: { resume: "yes" } })).toEqual({
        total: "five",
        log: ["began", "yes", "end"],
      });
    });

    test("migrate mends it: the answer to the old question is taken", async () => {
      const { client, thread_id, wait } = await restarted(migrating);
      const values = await wait({ command: { resume: "yes" } });
      expect(values).toEqual({ total: "5 in all", log: ["began", "yes", "end"] });
      const state = await client.threads.getState(thread_id);
      expect(state.values).toEqual(values);
      expect(state.metadata).toMatchObject({ graph_changed: true });
    });

    test("without it, the key is named", async () => {
      const { wait } = await restarted(graph(retyped));
      const answer = JSON.stringify(await wait({ command: { resume: "yes" } }));
      expect(answer).toContain("state.total: Invalid input: expected string, received number");
    });
  },
);
