import { access, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test, vi } from "vitest";
import type { GraphDef, Message } from "../../src/index.ts";
import { lines, type Client } from "./support/clients.ts";
import { directory, serve, type Server } from "./support/server.ts";

const root = join(import.meta.dirname, "../..");
const connect = lines[0]?.[1] as (url: string) => Client;

interface Example {
  readonly file: string;
  readonly code: string;
}

/** The pages for users: the README and the guide, by their paths. */
const pages = new Map<string, string>();
for (const file of [
  "README.md",
  ...(await readdir(join(root, "src/guide"))).map((name) => `src/guide/${name}`),
])
  pages.set(file, await readFile(join(root, file), "utf8"));

const blocksOf = (page: string, language: string): string[] =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "gm"))].map(
    ([, code = ""]) => code,
  );

/** The programs that the pages show; each names its file in the first line. */
const examples: readonly Example[] = [...pages.values()]
  .flatMap((page) => blocksOf(page, "ts"))
  .map((code) => ({ file: /^\/\/ (\S+\.ts)\n/.exec(code)?.[1] ?? "without a name", code }));

const example = (file: string): Example => {
  const found = examples.find((one) => one.file === file);
  if (found === undefined) throw new Error(`no page shows ${file}`);
  return found;
};

/** Runs an example as it stands there: only where `heddle` is, and the server's address, are told. */
async function run({ file, code }: Example, url = ""): Promise<{ readonly default: GraphDef }> {
  const home = await directory();
  await symlink(join(root, "node_modules"), join(home, "node_modules"));
  const path = join(home, file);
  await mkdir(dirname(path), { recursive: true });
  const index = pathToFileURL(join(root, "src/index.ts")).pathname;
  await writeFile(
    path,
    code.replace('from "heddle"', `from "${index}"`).replace("http://127.0.0.1:2024", url),
  );
  return (await import(/* @vite-ignore */ path)) as { default: GraphDef };
}

async function serving(file: string) {
  const { default: graph } = await run(example(file));
  const { url } = await serve({ graphs: { example: graph } });
  const client = connect(url);
  const { thread_id } = await client.threads.create();
  return { client, thread_id };
}

describe("the README and the guide:", () => {
  const checks: Readonly<Record<string, () => Promise<void>>> = {
    "graphs/review.ts": async () => {
      const { client, thread_id } = await serving("graphs/review.ts");
      const paused = await client.runs.wait(thread_id, "example", { input: { topic: "tea" } });
      expect(paused).toMatchObject({ __interrupt__: [{ value: { draft: "About tea." } }] });
      expect(
        await client.runs.wait(thread_id, "example", { command: { resume: { ok: true } } }),
      ).toMatchObject({
        log: ["written", "sent"],
      });
    },
    "graphs/order.ts": async () => {
      const { client, thread_id } = await serving("graphs/order.ts");
      const log = async (amount: number) =>
        ((await client.runs.wait(thread_id, "example", { input: { amount } })) as { log: string[] }).log;
      expect(await log(0)).toEqual(["checked 0"]);
      expect(await log(5)).toEqual(["checked 0", "checked 5", "billed", "shipped", "thanked"]);
    },
    "graphs/lengths.ts": async () => {
      const { client, thread_id } = await serving("graphs/lengths.ts");
      const events: unknown[] = [];
      for await (const { event, data } of client.runs.stream(thread_id, "example", {
        input: { words: ["one", "three"] },
        streamMode: ["custom", "values"],
      })) {
        if (event === "custom") events.push(data);
      }
      expect(events).toEqual([{ measuring: "one" }, { measuring: "three" }]);
      const { values } = await client.threads.getState(thread_id);
      expect(values).toEqual({ words: ["one", "three"], lengths: [3, 5], total: 8 });
    },
    "graphs/greeter.ts": async () => {
      const { client, thread_id } = await serving("graphs/greeter.ts");
      const greet = async (user: string) =>
        ((await client.runs.wait(thread_id, "example", { input: { user } })) as { greeting: string })
          .greeting;
      expect(await greet("Ann")).toBe("Visit 1 of Ann; 0 came back.");
      expect(await greet("Ann")).toBe("Visit 2 of Ann; 1 came back.");
    },
    "graphs/letter.ts": async () => {
      const { client, thread_id } = await serving("graphs/letter.ts");
      const write = (assistant: string, options = {}) =>
        client.runs.wait(thread_id, assistant, { input: { text: " Hello. " }, ...options });
      const { assistant_id } = await client.assistants.create({
        graphId: "example",
        config: { configurable: { greeting: "Love" } },
        context: { name: "Ann" },
      });
      expect(await write(assistant_id)).toEqual({ text: "Hello. Love, Ann" });
      expect(await write(assistant_id, { context: { name: "Bob" } })).toEqual({ text: "Hello. Love, Bob" });
      expect(await write("example", { context: { name: "Bob" } })).toEqual({ text: "Hello. Yours, Bob" });
      await expect(write("example")).rejects.toThrow(/context/);
    },
    "graphs/chat.ts": async () => {
      const { client, thread_id } = await serving("graphs/chat.ts");
      const tokens: unknown[] = [];
      for await (const { event, data } of client.runs.stream(thread_id, "example", {
        input: { messages: [{ role: "user", content: "How is Rome?" }] },
        streamMode: "messages-tuple",
      })) {
        if (event === "messages") tokens.push((data as unknown as [Message])[0].content);
      }
      expect(tokens.filter((text) => text !== "")).toEqual([
        "sunny in Rome",
        "It is ",
        "sunny in Rome.",
        "Good ",
        "bye.",
      ]);
      const { values } = await client.threads.getState<{ messages: Message[] }>(thread_id);
      expect(values.messages.map(({ type, content }) => `${type}: ${String(content)}`)).toEqual([
        "human: How is Rome?",
        "ai: ",
        "tool: sunny in Rome",
        "ai: It is sunny in Rome.",
        "ai: Good bye.",
      ]);
    },
    // The client's side.
    "ask.ts": async () => {
      const { url }: Server = await serve();
      const log = vi.spyOn(console, "log").mockImplementation(() => undefined);
      await run(example("ask.ts"), url);
      const said = JSON.stringify(log.mock.calls);
      log.mockRestore();
      expect(said).toContain("Draft 1: tea");
      expect(said).toContain('"updates",{"send":{"sent":true');
    },
  };

  test("examples are all run", () => {
    expect(examples.map(({ file }) => file).toSorted()).toEqual(Object.keys(checks).toSorted());
  });

  test("configurations are JSON", () => {
    const found = [...pages.values()].flatMap((page) => blocksOf(page, "json"));
    expect(found).not.toEqual([]);
    for (const text of found) expect(JSON.parse(text)).toBeTypeOf("object");
  });

  test("links lead to files that exist", async () => {
    for (const [file, page] of pages) {
      for (const [, target = ""] of page.matchAll(/\]\((?!https?:)([^)#]+)/g))
        await expect(
          access(join(root, dirname(file), target)),
          `${file}: ${target}`,
        ).resolves.toBeUndefined();
    }
  });

  test.each(Object.entries(checks))("%s", async (_, check) => {
    await expect(check()).resolves.toBeUndefined();
  });
});
