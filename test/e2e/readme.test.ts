import { once } from "node:events";
import { access, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { Client as Line1 } from "@langchain/langgraph-sdk";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { App, GraphDef, Message } from "../../src/index.ts";
import { lines, type Client } from "./support/clients.ts";
import { dial } from "./support/sockets.ts";
import { directory, serve } from "./support/server.ts";
import { newThread } from "./support/wire.ts";

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

/** The programs on the pages; each names its file in the first line. */
const examples: readonly Example[] = [...pages.values()]
  .flatMap((page) => blocksOf(page, "ts"))
  .map((code) => ({ file: /^\/\/ (\S+\.ts)\n/.exec(code)?.[1] ?? "without a name", code }));

const example = (file: string): Example => {
  const found = examples.find((one) => one.file === file);
  if (found === undefined) throw new Error(`no page shows ${file}`);
  return found;
};

/** Writes an example into a project unchanged, except for the location of `heddle` and the server's address. */
async function write(
  { file, code }: Example,
  url = "",
  project?: string,
): Promise<{ home: string; path: string }> {
  const home = project ?? (await directory());
  if (project === undefined) await symlink(join(root, "node_modules"), join(home, "node_modules"));
  const path = join(home, file);
  await mkdir(dirname(path), { recursive: true });
  const index = pathToFileURL(join(root, "src/index.ts")).pathname;
  await writeFile(
    path,
    code.replace('from "heddle"', `from "${index}"`).replace("http://127.0.0.1:2024", url),
  );
  return { home, path };
}

async function run(one: Example, url?: string): Promise<{ readonly default: GraphDef }> {
  const { path } = await write(one, url);
  return (await import(/* @vite-ignore */ path)) as { default: GraphDef };
}

/** Runs a client's program, and returns what it printed. */
async function printed(file: string): Promise<string> {
  const { url } = await serve();
  const log = vi.spyOn(console, "log").mockImplementation(() => undefined);
  await run(example(file), url);
  const said = JSON.stringify(log.mock.calls);
  log.mockRestore();
  return said;
}

/** The anchor of a heading on GitHub. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, "")
    .replaceAll(" ", "-");

/** The sections of a page by their anchors; the text before the first heading has none. */
function sectionsOf(page: string): ReadonlyMap<string, string> {
  const sections = new Map<string, string>();
  let anchor = "";
  let isCode = false;
  for (const line of page.split("\n")) {
    if (line.startsWith("```")) isCode = !isCode;
    const heading = isCode ? undefined : /^#+ (.+)$/.exec(line)?.[1];
    if (heading !== undefined) anchor = anchorOf(heading);
    sections.set(anchor, `${sections.get(anchor) ?? ""}${line}\n`);
  }
  return sections;
}

/** The links to files and headings of the repository in a text of the page `file`. */
const linksOf = (file: string, text: string) =>
  [...text.matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g)].map(([link, target = "", anchor]) => ({
    link: `${file}: ${link}`,
    path: join(root, target === "" ? file : join(dirname(file), target)),
    anchor,
  }));

async function serving(file: string) {
  const { default: graph } = await run(example(file));
  const { url } = await serve({ graphs: { example: graph } });
  const client = connect(url);
  const { thread_id } = await client.threads.create();
  return { client, thread_id };
}

interface VersionsFile {
  readonly default: GraphDef & { readonly versions: readonly GraphDef[] };
}

/** A letter that was begun by one graph, and may be served by the next. */
async function letterOf(first: GraphDef | undefined) {
  const data = await directory();
  const begun = await letterOn(first, data);
  await begun.begin();
  await begun.app.close();
  return { servedBy: (next: GraphDef) => letterOn(next, data, begun.thread) };
}

async function letterOn(graph: GraphDef | undefined, data: string, thread?: string) {
  const app = await serve({ data, graphs: { example: graph as GraphDef } });
  const client = connect(app.url);
  const thread_id = thread ?? (await client.threads.create()).thread_id;
  const wait = (payload: object) => client.runs.wait(thread_id, "example", payload as never);
  return {
    app,
    thread: thread_id,
    begin: () => wait({ input: {} }),
    go: () => wait({ input: null }),
    send: (type: string) => wait({ command: { resume: { type } } }),
  };
}

/** Runs a server that has an app below `/agents`, and calls both. */
async function servesAgents(file: string): Promise<void> {
  vi.stubEnv("PORT", "0");
  onTestFinished(() => void vi.unstubAllEnvs());
  const { home, path } = await write(example(file));
  await write(example("graphs/review.ts"), "", home);
  const { app, server } = (await import(/* @vite-ignore */ path)) as { app: App; server: Server };
  onTestFinished(async () => {
    await app.close(0);
    server.close();
  });
  if (!server.listening) await once(server, "listening");
  const url = `http://localhost:${(server.address() as AddressInfo).port}`;
  expect(await (await fetch(`${url}/about`)).text()).toBe("a page of mine");
  const paused = await connect(`${url}/agents`).runs.wait(null, "review", { input: { topic: "tea" } });
  expect(paused).toMatchObject({ __interrupt__: [{ value: { draft: "About tea." } }] });
  const thread = await newThread(`${url}/agents`);
  const socket = await dial(`${url}/agents/threads/${thread}/stream`);
  const asked = { id: 1, type: "run", assistant_id: "review", input: { topic: "tea" } };
  expect(await socket.ask(asked)).toMatchObject({ type: "ack" });
  await expect(dial(`${url}/about`)).rejects.toThrow("socket hang up");
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
    "graphs/payment.ts": async () => {
      const { client, thread_id } = await serving("graphs/payment.ts");
      const asked = await client.runs.wait(thread_id, "example", { input: { amount: 5 } });
      expect(asked).toMatchObject({ __interrupt__: [{ value: { events: ["APPROVE", "REJECT"] } }] });
      const paid = await client.runs.wait(thread_id, "example", { command: { resume: { type: "APPROVE" } } });
      expect(paid).toMatchObject({ __state__: "paid", receipt: "5 EUR received" });
    },
    "graphs/complaint.ts": async () => {
      const { client, thread_id } = await serving("graphs/complaint.ts");
      const wait = (payload: object) => client.runs.wait(thread_id, "example", payload as never);
      const asked = await wait({ input: { order: "o1" } });
      expect(asked).toMatchObject({
        __interrupt__: [{ value: { events: ["DECIDE", "NOTE"] } }],
        currency: "EUR",
      });
      const refused = wait({ command: { resume: { type: "DECIDE", amount: -1, reason: "late" } } });
      await expect(refused).rejects.toThrow("command.resume.amount: ");
      const decided = await wait({ command: { resume: { type: "DECIDE", amount: 5, reason: "late" } } });
      expect(decided).toMatchObject({ __state__: "decided", amount: 5 });
    },
    "graphs/letter-versions.ts": async () => {
      const letters = (await run(example("graphs/letter-versions.ts"))) as unknown as VersionsFile;
      const letter = await letterOf(letters.default.versions[0]);
      const later = await letter.servedBy(letters.default);
      expect(await later.send("SEND")).toMatchObject({ __state__: "sent", __version__: "1" });
      await later.begin();
      expect(await later.send("SEND")).toMatchObject({ __state__: "review", __version__: "2" });
    },
    "graphs/letter-migration.ts": async () => {
      const letters = (await run(example("graphs/letter-versions.ts"))) as unknown as VersionsFile;
      const { default: migrated } = await run(example("graphs/letter-migration.ts"));
      const letter = await letterOf(letters.default.versions[0]);
      const later = await letter.servedBy(migrated);
      await later.go();
      const sent = { __state__: "sent", __version__: "2", reviewer: "of version 1" };
      expect(await later.send("OK")).toMatchObject(sent);
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
    "graphs/report.ts": async () => {
      const { client, thread_id } = await serving("graphs/report.ts");
      expect(await client.runs.wait(thread_id, "example", { input: { topic: "tea" } })).toEqual({
        topic: "tea",
        notes: ["begun", "found tea"],
      });
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
    "graphs/refund.ts": async () => {
      const { client, thread_id } = await serving("graphs/refund.ts");
      const emitted = async (payload: object) => {
        const progress: unknown[] = [];
        for await (const { event, data } of client.runs.stream(thread_id, "example", {
          ...payload,
          streamMode: "custom",
        }))
          if (event === "custom") progress.push(data);
        return progress;
      };
      // The code before the question runs again with the answer, the step does not.
      expect(await emitted({ input: { order: "A" } })).toEqual([{ refunding: "A" }]);
      expect(await emitted({ command: { resume: { ok: true } } })).toEqual([{ refunding: "A" }]);
      const { values } = await client.threads.getState<{ log: string[] }>(thread_id);
      expect(values.log).toEqual(["ticket 1 of A: paid"]);
    },
    "graphs/refund-langgraph.ts": async () => {
      const { home } = await write(example("graphs/refund-langgraph.ts"));
      const config = join(home, "langgraph.json");
      const graphs = { refund: "./graphs/refund-langgraph.ts:refund" };
      await writeFile(config, JSON.stringify({ graphs }));
      const { url } = await serve({ config });
      const client = connect(url);
      const log = vi.spyOn(console, "log").mockImplementation(() => undefined);
      const { thread_id } = await client.threads.create();
      const paused = await client.runs.wait(thread_id, "refund", { input: { order: "A" } });
      expect(paused).toMatchObject({ __interrupt__: [{ value: { ticket: "ticket 1 of A" } }] });
      expect(
        await client.runs.wait(thread_id, "refund", { command: { resume: { ok: true } } }),
      ).toMatchObject({ result: "ticket 1 of A: paid" });
      expect(log.mock.calls).toEqual([["refunding A"], ["refunding A"]]);
      log.mockRestore();
    },
    "auth.ts": async () => {
      const { home } = await write(example("auth.ts"));
      const config = join(home, "heddle.json");
      await writeFile(config, JSON.stringify({ graphs: {}, auth: { path: "./auth.ts:auth" } }));
      const { url } = await serve({ config });
      const connectAs = (name: string) =>
        new Line1({
          apiUrl: url,
          apiKey: null,
          defaultHeaders: { authorization: `Bearer token-of-${name}` },
          callerOptions: { maxRetries: 0 },
        });
      const [ann, bob, nobody] = [connectAs("ann"), connectAs("bob"), connectAs("nobody")];
      await expect(nobody.threads.create()).rejects.toThrow("HTTP 401");
      const { thread_id, metadata } = await ann.threads.create();
      expect(metadata).toEqual({ owner: "ann" });
      await expect(bob.threads.get(thread_id)).rejects.toThrow("HTTP 404");
      const own = await ann.assistants.create({ graphId: "agent", metadata: { created_by: "system" } });
      expect(own.metadata).toEqual({ owner: "ann", created_by: "ann" });
      const mark = { metadata: { created_by: "system" } };
      expect((await ann.assistants.update(own.assistant_id, mark)).metadata).toEqual(own.metadata);
      await expect(bob.assistants.create({ graphId: "agent" })).rejects.toThrow("HTTP 403");
      await expect(bob.assistants.get(own.assistant_id)).rejects.toThrow("HTTP 404");
      const seen = await bob.assistants.search();
      expect(seen.map(({ graph_id }) => graph_id)).toContain("agent");
      expect(seen.map(({ metadata }) => metadata)).toEqual(seen.map(() => ({ created_by: "system" })));
      await ann.store.putItem(["notes"], "k", { a: 1 });
      expect(await ann.store.getItem(["notes"], "k")).toMatchObject({ namespace: ["ann", "notes"] });
      expect(await bob.store.getItem(["notes"], "k")).toBeNull();
    },
    "http.ts": async () => {
      const { home } = await write(example("http.ts"));
      const config = join(home, "heddle.json");
      await writeFile(config, JSON.stringify({ graphs: {}, http: { app: "./http.ts:app" } }));
      const { url } = await serve({ config });
      expect(await (await fetch(`${url}/hello/tea`)).json()).toEqual({ hello: "tea" });
      const counted = await fetch(`${url}/threads/count`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: "{}",
      });
      expect([await counted.json(), counted.headers.get("x-served-by")]).toEqual([0, "us"]);
    },
    "server.ts": async () => servesAgents("server.ts"),
    "express-server.ts": async () => servesAgents("express-server.ts"),
    "hono-server.ts": async () => servesAgents("hono-server.ts"),
    // The client's side.
    "ask.ts": async () => {
      const said = await printed("ask.ts");
      expect(said).toContain("Draft 1: tea");
      expect(said).toContain('"updates",{"send":{"sent":true');
    },
    "watch.ts": async () => {
      const said = await printed("watch.ts");
      expect(said).toContain("Draft 1: tea");
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

  test("links lead to files that exist, and to headings in them", async () => {
    const links = [...pages].flatMap(([file, page]) => linksOf(file, page));
    expect(links.filter(({ anchor }) => anchor !== undefined)).not.toEqual([]);
    for (const { link, path, anchor } of links) {
      await expect(access(path), link).resolves.toBeUndefined();
      if (anchor === undefined) continue;
      expect([...sectionsOf(await readFile(path, "utf8")).keys()], link).toContain(anchor);
    }
  });

  test("a link beside the name of a program leads to the section that shows it", async () => {
    let found = 0;
    for (const [file, page] of pages) {
      for (const paragraph of page.split("\n\n")) {
        const named = examples.filter((one) => paragraph.includes(`\`${one.file}\``));
        for (const { link, path, anchor = "" } of linksOf(file, named.length === 0 ? "" : paragraph)) {
          const section = sectionsOf(await readFile(path, "utf8")).get(anchor);
          for (const one of named) expect(section, `${link} and ${one.file}`).toContain(`// ${one.file}\n`);
          found++;
        }
      }
    }
    expect(found).toBeGreaterThan(0);
  });

  test.each(Object.entries(checks))("%s", async (_, check) => {
    await expect(check()).resolves.toBeUndefined();
  });
});
