import { readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { lines } from "../support/clients.ts";
import { serve } from "../support/server.ts";
import { NOBODY } from "../support/wire.ts";
import { methodsOf, partsOf, recorded } from "./recorder.ts";

describe.each(lines)("what %s can call", (_, connect) => {
  test("every part of the client has its table here", () => {
    const tables = new Set(readdirSync(import.meta.dirname).map((file) => file.replace(/\.test\.ts$/, "")));
    const parts = partsOf(connect("http://127.0.0.1:1"));
    expect(parts).toContain("threads");
    expect(parts.filter((part) => !tables.has(part.replace("~", "")))).toEqual([]);
  });

  test("the methods of a part are those of its own class", () => {
    const methods = methodsOf(connect("http://127.0.0.1:1"), "store");
    expect([...methods].sort()).toEqual([
      "deleteItem",
      "getItem",
      "listNamespaces",
      "putItem",
      "searchItems",
    ]);
  });

  test("only a call that succeeded is noted", async () => {
    const { url } = await serve();
    const { client, called } = recorded(connect(url));
    await expect(client.threads.get(NOBODY)).rejects.toMatchObject({ status: 404 });
    const lost = client.runs.joinStream(NOBODY, NOBODY);
    await expect(lost.next()).rejects.toMatchObject({ status: 404 });
    expect([...called]).toEqual([]);
    const { thread_id } = await client.threads.create();
    const input = { messages: [{ role: "user", content: "hi" }] };
    const stream = client.runs.stream(thread_id, "agent", { input });
    expect(await stream.next()).toMatchObject({ value: { event: "metadata" } });
    await stream.return(undefined);
    expect([...called]).toEqual(["threads.create", "runs.stream"]);
  });
});
