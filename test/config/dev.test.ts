import { existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { build, Running } from "./process.ts";
import { connect, Home, say, saying } from "./project.ts";

const home = new Home();
vi.setConfig({ testTimeout: 60_000 });
beforeAll(build, 120_000);
afterAll(() => home.remove());

const LOADED = '"message":"reloaded"';
const STARTED = '"message":"restarted"';
const KEPT = "the graphs stay as they were";

/**
 * A project with an ES module in TypeScript, which writes what its neighbour exports, and a CommonJS module in
 * JavaScript.
 */
function mixed(name: string): string {
  return home.project(name, {
    "package.json": { type: "module" },
    "words.ts": 'export const word: string = "one";',
    "a.ts": `import { graph, list } from "heddle"; import { word } from "./words.ts";
      export default ${saying("word")};`,
    "words.cjs": 'exports.word = "un";',
    "b.cjs": `const { graph, list } = require("heddle"); const { word } = require("./words.cjs");
      module.exports = ${saying("word")};`,
    "heddle.json": { graphs: { a: "./a.ts", b: "./b.cjs" } },
  });
}

describe("heddle dev", () => {
  test("keeps its data beside the configuration, and says where to look at it", async () => {
    const config = mixed("data");
    const first = await Running.spawn("dev", ["--config", config]);
    await first.printed("Agent Chat:");
    const at = encodeURIComponent(first.url);
    expect(first.output).toContain(`https://smith.langchain.com/studio?baseUrl=${at}\n`);
    expect(first.output).toContain(`https://agentchat.vercel.app/?apiUrl=${at}&assistantId=a\n`);
    const { thread_id } = await connect(first).threads.create();
    expect(await first.stop()).toBe(0);
    expect(existsSync(join(dirname(config), ".heddle", "heddle.json"))).toBe(true);
    const second = await Running.spawn("dev", ["--config", config]);
    expect(await connect(second).threads.get(thread_id)).toMatchObject({ thread_id });
  });

  test("takes the new graph when a file changes, or one that it imports, and threads go on", async () => {
    const config = mixed("reload");
    const file = (name: string) => join(dirname(config), name);
    const server = await Running.spawn("dev", ["--config", config]);
    const client = connect(server);
    const { thread_id } = await client.threads.create();
    expect(await client.runs.wait(thread_id, "a", { input: {} })).toEqual({ said: ["one"] });
    expect(await say(server, "b")).toBe("un");

    writeFileSync(file("words.ts"), 'export const word: string = "two";');
    await server.printed(LOADED, 1);
    expect(await client.runs.wait(thread_id, "a", { input: {} })).toEqual({ said: ["one", "two"] });

    writeFileSync(file("words.cjs"), 'exports.word = "deux";');
    await server.printed(LOADED, 2);
    expect(await say(server, "b")).toBe("deux");

    // As editors do: the new file replaces the old one.
    writeFileSync(file("words.ts.tmp"), 'export const word: string = "three";');
    renameSync(file("words.ts.tmp"), file("words.ts"));
    await server.printed(LOADED, 3);
    expect(await client.runs.wait(thread_id, "a", { input: {} })).toEqual({ said: ["one", "two", "three"] });
    expect(await server.stop()).toBe(0);
  });

  test("keeps the old graph when the new one cannot be loaded, and says why", async () => {
    const config = mixed("broken");
    const file = (name: string) => join(dirname(config), name);
    const server = await Running.spawn("dev", ["--config", config]);
    writeFileSync(file("words.ts"), "export const word: string = ;");
    await server.printed(KEPT, 1);
    expect(server.output).toContain("graphs.a:");
    expect(await say(server, "a")).toBe("one");

    // Deleted and created again: the folder is watched, not the file.
    rmSync(file("words.ts"));
    await server.printed(KEPT, 2);
    writeFileSync(file("words.ts"), 'export const word: string = "mended";');
    await server.printed(LOADED, 1);
    expect(await say(server, "a")).toBe("mended");

    // The file no longer exports a graph: either all graphs are reloaded, or none.
    writeFileSync(file("b.cjs"), "module.exports = 5;");
    await server.printed(KEPT, 3);
    expect(server.output).toContain("is no graph");
    expect(await say(server, "b")).toBe("un");

    // The output contains the place where it threw, without the frames of the loader.
    writeFileSync(file("b.cjs"), '\nthrow new TypeError("no luck");');
    await server.printed(KEPT, 4);
    const told = JSON.parse(server.output.trim().split("\n").at(-1) ?? "") as { error: Error };
    expect(told.error.message).toContain(`graphs.b: ${file("b.cjs")} cannot be loaded: no luck`);
    expect(told.error.stack).toContain(`at Object.<anonymous> (${file("b.cjs")}`);
    expect(told.error.stack).not.toMatch(/node_modules|node:/);
  });

  test("prints, for people, what cannot be loaded in lines of their own, and nothing of Heddle's own stack", async () => {
    const config = mixed("lines");
    const server = await Running.spawn("dev", [
      "--config",
      config,
      "--log",
      "text",
      "--no-browser",
      "-n",
      "2",
    ]);
    expect(server.output).toContain("--no-browser is ignored: Heddle opens no browser");
    const files = {
      "words.ts": "export const word: string = ;",
      "b.cjs": '\nthrow new TypeError("no \\"luck\\"");',
    };
    home.project("lines", files);
    await server.printed('no "luck"');
    expect(server.output).toMatch(
      /the graphs stay as they were\n {2}error:\n {4}graphs\.a: .*\n(.*\n)* {4}graphs\.b: .*no "luck"/,
    );
    home.project("lines", { "heddle.json": "{\n// none\n}" });
    await server.printed(
      "\n    " + config + ": is not JSON: JSON does not support comments (line 2, column 1)\n",
    );
    expect(server.output.split("is not JSON").at(-1)).not.toContain(" at ");
  });

  test("takes the new rules when the file that authenticates users changes, or one that it imports", async () => {
    const config = home.project("users", {
      "package.json": { type: "module" },
      "a.ts": `import { graph, list } from "heddle"; export default ${saying("1")};`,
      "names.js": 'export const names = ["ann"];',
      "auth.js": `import { names } from "./names.js";
        export const auth = { "~handlerCache": { authenticate: (request) => {
          const name = request.headers.get("authorization");
          if (!names.includes(name)) throw { status: 401, message: "Who are you?", headers: {} };
          return name;
        } } };`,
      "heddle.json": { graphs: { a: "./a.ts" }, auth: { path: "./auth.js:auth" } },
    });
    const server = await Running.spawn("dev", ["--config", config]);
    const statuses = () =>
      Promise.all(
        ["ann", "bob"].map(async (authorization) => {
          const answer = await fetch(`${server.url}/threads/count`, {
            method: "POST",
            headers: { authorization, "content-type": "application/json" },
            body: "{}",
          });
          return answer.status;
        }),
      );
    expect(await statuses()).toEqual([200, 401]);
    writeFileSync(join(dirname(config), "names.js"), 'export const names = ["bob"];');
    await server.printed(STARTED, 1);
    expect(await statuses()).toEqual([401, 200]);

    // While the file cannot be loaded, the previous rules apply.
    writeFileSync(join(dirname(config), "auth.js"), "export const auth = {};");
    await server.printed(KEPT, 1);
    expect(server.output).toContain("auth.path:");
    expect(await statuses()).toEqual([401, 200]);
  });

  test("a run that is under way keeps the graph that it began with", async () => {
    const graph = (word: string) => `
      import { graph, list } from "heddle";
      import { existsSync } from "node:fs";
      const gate = ${JSON.stringify(join(home.path, "gate"))};
      export default graph({
        state: { said: list() },
        nodes: {
          first: async () => {
            console.log("at first");
            while (!existsSync(gate)) await new Promise((resolve) => setTimeout(resolve, 5));
            return { said: ["first ${word}"] };
          },
          second: async () => ({ said: ["second ${word}"] }),
        },
        edges: { start: "first", first: "second" },
      });`;
    const config = home.project("under-way", {
      "a.mjs": graph("old"),
      "heddle.json": { graphs: { a: "./a.mjs" } },
    });
    const server = await Running.spawn("dev", ["--config", config]);
    const client = connect(server);
    const { thread_id } = await client.threads.create();
    const { run_id } = await client.runs.create(thread_id, "a", { input: {} });
    await server.printed("at first");
    home.project("under-way", { "a.mjs": graph("new") });
    await server.printed(LOADED);
    home.project(".", { gate: "" });
    expect(await client.runs.join(thread_id, run_id)).toEqual({ said: ["first old", "second old"] });
    expect(await client.runs.wait(thread_id, "a", { input: {} })).toEqual({
      said: ["first old", "second old", "first new", "second new"],
    });
  });

  test("graphs come and go with the configuration; what else it says starts the server anew", async () => {
    const config = mixed("configuration");
    const server = await Running.spawn("dev", ["--config", config]);
    const { thread_id } = await connect(server).threads.create();
    home.project("configuration", {
      "c.mjs": `import { graph, list } from "heddle"; export const c = ${saying("process.env.WORD")};`,
      "heddle.json": { graphs: { a: "./a.ts", c: "./c.mjs:c" } },
    });
    await server.printed(LOADED);
    expect(await say(server, "c")).toBe(null);
    await expect(say(server, "b")).rejects.toThrow("404");

    home.project("configuration", {
      "my.env": "WORD=first",
      "heddle.json": { graphs: { c: "./c.mjs:c" }, env: "my.env", http: { max_body: 10_000 } },
    });
    await server.printed(STARTED, 1);
    expect(await say(server, "c")).toBe("first");
    expect(await connect(server).threads.get(thread_id)).toMatchObject({ thread_id });
    home.project("configuration", { "my.env": "WORD=second" });
    await server.printed(STARTED, 2);
    expect(await say(server, "c")).toBe("second");

    home.project("configuration", { "heddle.json": "{ graphs" });
    await server.printed(KEPT);
    expect(await say(server, "c")).toBe("second");
  });

  test("an edit of the configuration that is saved during a reload is not lost", async () => {
    const gate = JSON.stringify(join(home.path, "edits", "gate"));
    const slow = `import { graph, list } from "heddle";
      import { existsSync } from "node:fs";
      if (globalThis.isLoaded) console.log("loading again");
      while (globalThis.isLoaded && !existsSync(${gate})) await new Promise((resolve) => setTimeout(resolve, 5));
      globalThis.isLoaded = true;
      export default ${saying("1")};`;
    const graphs = { a: "./a.mjs" };
    const config = home.project("edits", { "a.mjs": slow, "heddle.json": { graphs } });
    const server = await Running.spawn("dev", ["--config", config]);
    home.project("edits", { "heddle.json": { graphs, http: { max_body: 10_000 } } });
    await server.printed("loading again");
    home.project("edits", { "heddle.json": { graphs: { b: "./a.mjs" } }, gate: "" });
    await server.printed(STARTED, 2);
    expect(await say(server, "b")).toBe(1);
  });

  test("follows the files of the HTTP application and of the store's embedder", async () => {
    const config = home.project("parts", {
      "a.mjs": `import { graph, list } from "heddle"; export default ${saying("1")};`,
      "word.mjs": 'export const word = "one";',
      "app.mjs": `import { word } from "./word.mjs";
        export const app = ({ url }) => url.endsWith("/word") ? new Response(word) : undefined;`,
      "embed.mjs": "export const embed = (texts) => texts.map(() => [1, 0]);",
      "heddle.json": {
        graphs: { a: "./a.mjs" },
        http: { app: "./app.mjs:app" },
        store: { index: { embed: "./embed.mjs:embed", dims: 2 } },
      },
    });
    const server = await Running.spawn("dev", ["--config", config]);
    const word = async () => (await fetch(`${server.url}/word`)).text();
    expect(await word()).toBe("one");
    home.project("parts", { "word.mjs": 'export const word = "two";' });
    await server.printed(STARTED, 1);
    expect(await word()).toBe("two");

    home.project("parts", {
      "embed.mjs": `export const embed = (texts) => texts.map(() => (console.log("embedded anew"), [1, 0]));`,
    });
    await server.printed(STARTED, 2);
    await connect(server).store.putItem(["notes"], "first", { text: "anything" });
    expect(server.output).toContain("embedded anew");

    // A file that cannot be loaded does not end the server.
    for (const [file, setting] of [
      ["app.mjs", "http.app"],
      ["embed.mjs", "store.index.embed"],
    ] as const) {
      home.project("parts", { [file]: "export default 5;" });
      await server.printed(`${setting}: `, 1);
      expect(await word()).toBe("two");
      home.project("parts", {
        "app.mjs": "export const app = () => undefined;",
        "embed.mjs": "export const embed = (texts) => texts.map(() => [1, 0]);",
      });
    }
  });

  test("goes on serving while the file with the keys of tokens is missing", async () => {
    const graphs = { a: "./a.mjs" };
    const config = home.project("keys", {
      "a.mjs": `import { graph, list } from "heddle"; export default ${saying("1")};`,
      "heddle.json": { graphs },
    });
    const server = await Running.spawn("dev", ["--config", config]);
    const jwt = { issuer: "https://id.example.com/", audience: "heddle", jwks: "./keys.json" };
    home.project("keys", { "heddle.json": { graphs, auth: { jwt } } });
    await server.printed(KEPT);
    expect(server.output).toContain("auth.jwt.jwks: ");
    expect(await say(server, "a")).toBe(1);

    home.project("keys", { "keys.json": { keys: [] } });
    await server.printed(STARTED, 1);
    await expect(say(server, "a")).rejects.toThrow("401");

    // The changed key in the file takes effect.
    home.project("keys", { "keys.json": { keys: [{ kty: "RSA", kid: "new", n: "AQAB", e: "AQAB" }] } });
    await server.printed(STARTED, 2);
  });

  test("a server that cannot start again says so, and starts with the next change", async () => {
    const graphs = { a: "./a.mjs" };
    const config = home.project("down", {
      "a.mjs": `import { graph, list } from "heddle"; export default ${saying("1")};`,
      "no-folder": "",
      "heddle.json": { graphs },
    });
    const server = await Running.spawn("dev", ["--config", config]);
    const data = join(dirname(config), "no-folder", "data");
    home.project("down", { "heddle.json": { graphs, env: { HEDDLE_DATA: data } } });
    await server.printed("the server could not start again");
    expect(server.output).not.toContain(KEPT);
    home.project("down", { "heddle.json": { graphs } });
    await server.printed(STARTED);
    expect(await say(server, "a")).toBe(1);
    expect(await server.stop()).toBe(0);
  });
});
