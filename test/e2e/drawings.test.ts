import { describe, expect, test } from "vitest";
import { z } from "zod";
import { graph, messages, value } from "../../src/index.ts";
import { lines } from "./support/clients.ts";
import { differs } from "./support/suite-variant.ts";
import { serve } from "./support/server.ts";
import { get, NOBODY } from "./support/wire.ts";

const body = async () => ({});
const annotated = differs("schemas of annotations");
const n = annotated ? { type: "number" } : { default: 0 };
const state = { n: value(0) };
const leaf = graph({ state, nodes: { d1: body, d2: body }, edges: { start: "d1", d1: "d2" } });
const middle = graph({ state, nodes: { b: leaf, c: body }, edges: { start: "b", b: "c" } });
const whole = graph({
  state: { ...state, messages: messages(), topic: z.string().optional() },
  context: z.object({ model: z.string().default("m") }),
  nodes: { sub: middle, leaf },
  edges: { start: "sub", sub: "leaf" },
});

describe.each(lines)("drawings over %s", (_, connect) => {
  const start = async () => connect((await serve({ graphs: { whole, leaf } })).url);

  test("a graph is drawn flat, some levels deep, or whole", async () => {
    const client = await start();
    const nodes = async (xray?: boolean | number) =>
      (await client.assistants.getGraph("whole", xray === undefined ? {} : { xray })).nodes.map(
        ({ id }) => id,
      );
    expect(await nodes()).toEqual(["__start__", "sub", "leaf", "__end__"]);
    expect(await nodes(0)).toEqual(await nodes());
    expect(await nodes(1)).toEqual(["__start__", "sub:b", "sub:c", "leaf:d1", "leaf:d2", "__end__"]);
    const deep = ["__start__", "sub:b:d1", "sub:b:d2", "sub:c", "leaf:d1", "leaf:d2", "__end__"];
    expect(await nodes(2)).toEqual(deep);
    expect(await nodes(true)).toEqual(deep);
    const { edges } = await client.assistants.getGraph("whole");
    expect(edges).toEqual([
      { source: "__start__", target: "sub", conditional: false },
      { source: "sub", target: "leaf", conditional: false },
      { source: "leaf", target: "__end__", conditional: false },
    ]);
  });

  test("what it takes and gives is told as JSON Schema", async () => {
    const client = await start();
    const { assistant_id } = await client.assistants.create({ graphId: "whole" });
    const schemas = await client.assistants.getSchemas(assistant_id);
    expect(schemas).toMatchObject({
      graph_id: "whole",
      input_schema: {
        type: "object",
        properties: { messages: { type: "array" }, topic: annotated ? {} : { type: "string" } },
      },
      output_schema: { type: "object" },
      state_schema: { type: "object", properties: { n } },
      context_schema: { properties: { model: { type: "string", default: "m" } } },
      config_schema: annotated ? schemas.context_schema : null,
    });
  });

  test("its subgraphs are told by the way to them", async () => {
    const client = await start();
    const found = async (options: Parameters<typeof client.assistants.getSubgraphs>[1]) =>
      Object.entries(await client.assistants.getSubgraphs("whole", options)).map(([ns, schemas]) => [
        ns,
        (schemas as unknown as { graph_id: string }).graph_id,
      ]);
    const direct = [
      ["sub", "sub"],
      ["leaf", "leaf"],
    ];
    expect(await found({})).toEqual(direct);
    expect(await found({ recurse: true })).toEqual([direct[0], ["sub|b", "leaf"], direct[1]]);
    expect(await found({ namespace: "sub" })).toEqual([direct[0]]);
    expect(await found({ namespace: "sub|b", recurse: true })).toEqual([["sub|b", "leaf"]]);
    expect(await found({ namespace: `sub:${NOBODY}|b:${NOBODY}`, recurse: true })).toEqual([
      ["sub|b", "leaf"],
    ]);
    expect(await found({ namespace: "sub|b" })).toEqual([]);
    expect(await found({ namespace: "nope" })).toEqual([]);
    const { sub } = await client.assistants.getSubgraphs("whole");
    expect(sub).toMatchObject({ state_schema: { properties: { n } }, context_schema: null });
  });

  test("of an unknown assistant there is nothing", async () => {
    const client = await start();
    for (const asked of [
      client.assistants.getGraph("nope"),
      client.assistants.getSchemas(NOBODY),
      client.assistants.getSubgraphs("nope"),
    ]) {
      await expect(asked).rejects.toMatchObject({ status: 404 });
    }
  });
});

test("of an assistant whose graph is gone there is nothing either, but the assistant", async () => {
  const server = await serve({ graphs: { whole, leaf } });
  const made = await fetch(`${server.url}/assistants`, {
    method: "POST",
    body: JSON.stringify({ graph_id: "leaf", assistant_id: NOBODY }),
  });
  expect(made.status).toBe(200);
  server.replaceGraphs({ whole });
  expect((await get(`${server.url}/assistants/${NOBODY}`)).status).toBe(200);
  for (const what of ["graph", "schemas", "subgraphs"]) {
    const response = await get(`${server.url}/assistants/${NOBODY}/${what}`);
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ detail: expect.stringContaining("leaf") as unknown });
  }
});
