import { expect, test } from "vitest";
import { type Client, lines } from "./support/clients.ts";
import { directory, serve } from "./support/server.ts";

test.each(lines)(
  "what was acknowledged is there after a restart on the same directory, over %s",
  async (_, connect) => {
    const data = await directory();
    const server = await serve({ data });
    const before = connect(server.url);
    const { thread_id } = await before.threads.create();
    const paused = await before.runs.wait(thread_id, "approval", { input: { topic: "tea" } });
    expect(paused).toHaveProperty("__interrupt__");
    await server.close();

    const client = connect((await serve({ data })).url);
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "interrupted" });
    const resumed = await client.runs.wait(thread_id, "approval", { command: { resume: { ok: true } } });
    expect(resumed).toMatchObject({ sent: true, log: ["wrote about tea", "approved", "sent"] });
  },
);

test("two servers in one process know nothing of each other", async () => {
  const [one, two] = await Promise.all([serve(), serve()]);
  const connect = lines[0]?.[1] as (url: string) => Client;
  const { thread_id } = await connect(one.url).threads.create();
  await expect(connect(two.url).threads.get(thread_id)).rejects.toMatchObject({ status: 404 });
  await one.close();
  expect(await connect(two.url).threads.create()).toMatchObject({ status: "idle" });
});
