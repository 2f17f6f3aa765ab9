import { mkdirSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { build, Running } from "./process.ts";
import { Home, say, saying } from "./project.ts";

const home = new Home();
beforeAll(build, 120_000);
afterAll(() => home.remove());

const tryImports = `
  const attempt = async (load: () => Promise<any>) => {
    try {
      return Object.keys(await load()).length > 0 ? "loaded" : "empty";
    } catch (error: any) {
      return error.message;
    }
  };
  export const imports = async () => ({
    package: await attempt(() => import("zod")),
    bare: (await import("./late" as any)).late,
    js: (await import("./late.js" as any)).late,
    ts: (await import("./late.ts" as any)).late,
    mjs: await attempt(() => import("./m.mjs" as any)),
    json: await attempt(() => import("./d.json" as any)),
    alias: (await import("@lib/late" as any)).late,
    directory: __dirname,
    file: __filename,
  });`;

const late = (word: string) => `export const late: string = "${word}";`;

function commonJs(name: string): string {
  const config = home.project(name, {
    "package.json": {},
    "tsconfig.json": { compilerOptions: { paths: { "@lib/*": ["./*"] } } },
    "late.ts": late("one"),
    "m.mjs": "export const m = 1;",
    "d.json": { a: 1 },
    "helper.ts": tryImports,
    "entry.ts": `import { graph, list } from "heddle"; ${tryImports} export default ${saying("await imports()")};`,
    "through.ts": `import { graph, list } from "heddle"; import { imports } from "./helper";
      export default ${saying("await imports()")};`,
    "c.cts": `import heddle = require("heddle"); const { graph, list } = heddle;
      export default ${saying('{ directory: __dirname, word: (await import("./late" as any)).late }')};`,
    "heddle.json": { graphs: { entry: "./entry.ts", through: "./through.ts", cts: "./c.cts" } },
  });
  const modules = join(dirname(config), "node_modules");
  mkdirSync(modules);
  symlinkSync(join(import.meta.dirname, "../../node_modules/zod"), join(modules, "zod"));
  return config;
}

describe("CommonJS in TypeScript", () => {
  test.each(["start", "dev"] as const)(
    "imports at run time, and knows its folder, with %s",
    async (command) => {
      const config = commonJs(command);
      const directory = dirname(config);
      const server = await Running.spawn(command, ["--config", config]);
      const all = (word: string, file: string) => ({
        package: "loaded",
        bare: word,
        js: word,
        ts: word,
        mjs: "loaded",
        json: "loaded",
        alias: word,
        directory,
        file: join(directory, file),
      });
      expect(await say(server, "entry")).toEqual(all("one", "entry.ts"));
      expect(await say(server, "through")).toEqual(all("one", "helper.ts"));
      expect(await say(server, "cts")).toEqual({ directory, word: "one" });
      if (command === "start") return;
      home.project(command, { "late.ts": late("two") });
      await server.printed('"message":"reloaded"');
      expect(await say(server, "entry")).toEqual(all("two", "entry.ts"));
      expect(await say(server, "through")).toEqual(all("two", "helper.ts"));
      expect(await say(server, "cts")).toEqual({ directory, word: "two" });
    },
  );
});

describe("a module that graphs, authentication and the HTTP application import", () => {
  test.each([
    ["ES modules, started", "start", { type: "module" }],
    ["CommonJS, started", "start", {}],
    ["ES modules, in development", "dev", { type: "module" }],
    ["CommonJS, in development", "dev", {}],
  ] as const)("has one instance: %s", async (name, command, manifest) => {
    const shared = (version: number) =>
      `export const shared = { version: ${version}, count: 0 }; export const next = () => ++shared.count;`;
    const imports = `import { next, shared } from "./shared.js";`;
    const graph = `import { graph, list } from "heddle"; ${imports} export default ${saying("next()")};`;
    const config = home.project(name, {
      "package.json": manifest,
      "shared.ts": shared(1),
      "a.ts": graph,
      "b.ts": graph,
      "auth.ts": `${imports}
        export const auth = { "~handlerCache": { authenticate: () => (next(), "ann") } };`,
      "app.ts": `${imports} 
        export const app = ({ url }: Request) => url.endsWith("/seen") ? Response.json(shared) : undefined;`,
      "embed.ts": `${imports} export const embed = (texts: string[]) => texts.map(() => [shared.version, next()]);`,
      "heddle.json": {
        graphs: { a: "./a.ts", b: "./b.ts" },
        auth: { path: "./auth.ts:auth" },
        http: { app: "./app.ts:app" },
        store: { index: { embed: "./embed.ts:embed", dims: 2 } },
      },
    });
    const server = await Running.spawn(command, ["--config", config]);
    const seen = async () => (await fetch(`${server.url}/seen`)).json() as Promise<{ count: number }>;
    const check = async (version: number) => {
      const before = await seen();
      expect(before).toMatchObject({ version });
      const first = await say(server, "a");
      expect(first).toBeGreaterThan(before.count + 1);
      expect(await say(server, "b")).toBeGreaterThan(Number(first));
      const { count } = await seen();
      await fetch(`${server.url}/store/items`, {
        method: "PUT",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ namespace: ["n"], key: "k", value: { text: "t" } }),
      });
      // Two calls of the authentication, and one of the embedder.
      expect((await seen()).count).toBe(count + 3);
    };
    await check(1);
    if (command === "start") return;
    home.project(name, { "shared.ts": shared(2) });
    await server.printed('"message":"restarted"', 1);
    await check(2);
    home.project(name, { "a.ts": `${graph}\n` });
    await server.printed('"message":"restarted"', 2);
    await check(2);
  });
});
