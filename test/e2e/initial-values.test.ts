import { expect, test } from "vitest";
import { graph, reduce, value } from "../../src/index.ts";
import { directory, serve } from "./support/server.ts";
import { postJson } from "./support/wire.ts";

test("a node that changes an initial value in place changes it for its own thread alone", async () => {
  const changing = graph({
    state: {
      items: value<string[]>([]),
      nested: value<{ names: string[] }>({ names: [] }),
      folded: reduce<string[], string>([], (all, one) => [...all, one]),
      note: value(""),
    },
    nodes: {
      change: async ({ items, nested, folded, note }) => {
        items.push(note);
        nested.names.push(note);
        folded.push(note);
        return { items, nested };
      },
    },
    edges: { start: "change" },
  });
  const { url } = await serve({ data: await directory(), graphs: { changing } });
  const firstRun = async (note: string) => {
    const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`);
    return postJson(`${url}/threads/${thread_id}/runs/wait`, { assistant_id: "changing", input: { note } });
  };

  await firstRun("a");
  expect(await firstRun("b")).toEqual({ items: ["b"], nested: { names: ["b"] }, folded: ["b"], note: "b" });
});
