import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { configFileAt, findConfig, readConfig } from "../../src/config/config.ts";

const home = mkdtempSync(join(tmpdir(), "heddle-config-"));
afterAll(() => rmSync(home, { recursive: true }));

function write(name: string, content: unknown): string {
  const path = join(home, name);
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

describe("a configuration file", () => {
  test("names graphs by file and export, relative to itself", () => {
    const graphs = {
      agent: "./agent.ts:agent",
      plain: "lib/plain.js",
      far: "/srv/far.mjs:default",
      described: { path: "./agent.ts:other", description: "as LangGraph has it" },
    };
    expect(readConfig(write("a.json", { graphs })).graphs).toEqual({
      agent: { file: join(home, "agent.ts"), name: "agent" },
      plain: { file: join(home, "lib/plain.js"), name: "default" },
      far: { file: "/srv/far.mjs", name: "default" },
      described: { file: join(home, "agent.ts"), name: "other" },
    });
  });

  test("a graph's description is that of its default assistant, and must be a text", () => {
    const described = { path: "./agent.ts", description: "answers" };
    const variables = { LANGGRAPH_CONFIG: JSON.stringify({ agent: { context: { tone: "dry" } } }) };
    const path = write("described.json", { graphs: { agent: described, plain: "./agent.ts" } });
    expect(readConfig(path, {}).assistants).toEqual({ agent: { description: "answers" } });
    expect(readConfig(path, variables).assistants).toEqual({
      agent: { config: {}, context: { tone: "dry" }, description: "answers" },
    });
    const wrong = write("wrong.json", { graphs: { agent: { ...described, description: 1 } } });
    expect(() => readConfig(wrong, {})).toThrow("graphs.agent.description must be a text");
  });

  test("variables that env lists and that are not set are noted", () => {
    const path = write("listed.json", { graphs: {}, env: ["A", "B", "C", "D"] });
    expect(readConfig(path, { A: "1", B: "" }).notes).toEqual([
      'env lists variables that are not set: "C", "D"',
    ]);
    expect(readConfig(path, { A: "1", B: "2", C: "3", D: "4" }).notes).toEqual([]);
  });

  test("a file of ui that is missing is noted, with its field", () => {
    write("card.tsx", "export default {};");
    const path = write("ui.json", { graphs: {}, ui: { a: "./card.tsx", b: "./card", c: "./gone.tsx" } });
    expect(readConfig(path, {}).notes).toEqual([
      `ui.c names "./gone.tsx", but there is no file ${join(home, "gone.tsx")}`,
    ]);
  });

  test("the time in which types are read is a variable of it, or of the environment", () => {
    const name = "LANGGRAPH_SCHEMA_RESOLVE_TIMEOUT_MS";
    const path = write("timeout.json", { graphs: {}, env: { [name]: "5000" } });
    expect(readConfig(path, {}).schemaTimeout).toBe(5_000);
    expect(readConfig(path, { [name]: "6000" }).schemaTimeout).toBe(6_000);
    for (const value of ["0", "-1", "1.5", "soon"])
      expect(() => readConfig(path, { [name]: value })).toThrow(
        `${name} must be a whole number of milliseconds, 1 or more`,
      );
  });

  test("a langgraph.json is read as it is: what is about images, Python and the like is none of ours", () => {
    const path = write("langgraph.json", {
      $schema: "https://langgra.ph/schema.json",
      node_version: "20",
      dependencies: ["."],
      dockerfile_lines: ["RUN true"],
      node_loader: "tsx",
      graphs: {},
      env: { A: "1" },
      store: { index: {} },
      auth: null,
      http: { disable_store: false, max_body: 1024 },
      streams: { sync: "memory", ttl: "36h", stacks: true },
      checkpointer: { ttl: { strategy: "keep_latest", default_ttl: 60, sweep_interval_minutes: 0.5 } },
    });
    expect(readConfig(path)).toEqual({
      path,
      graphs: {},
      env: { A: "1" },
      notes: [],
      maxBody: 1024,
      sync: "memory",
      streamsTtl: 36 * 3_600_000,
      stacks: true,
      threadTtl: { lifetime: { strategy: "keep_latest", minutes: 60 }, interval: 30_000 },
    });
  });

  test("which headers go into runs, and which routes are removed, is read as LangGraph has it", () => {
    const http = {
      configurable_headers: { includes: ["x-user", "my-*"], excludes: ["my-own"] },
      disable_mcp: true,
      disable_a2a: true,
      disable_webhooks: false,
    };
    const read = readConfig(write("langgraph.json", { graphs: {}, http }));
    expect(read.notes).toEqual([]);
    expect(read.configurableHeaders).toEqual(http.configurable_headers);
    expect(read.access).toEqual({ disabled: ["mcp", "a2a"] });
  });

  test("auth is the project's handlers, or the tokens of a provider; or there are no users", () => {
    const authOf = (auth: object) => readConfig(write("auth.json", { graphs: {}, auth })).auth;
    expect(authOf({ path: "./auth.ts:mine" })).toEqual({
      users: { kind: "handlers", file: { file: join(home, "auth.ts"), name: "mine" } },
      studioUser: true,
    });
    const jwt = { issuer: "https://id.test/", audience: ["a", "b"] };
    expect(authOf({ jwt: { ...jwt, jwks: "https://id.test/jwks" }, disable_studio_auth: true })).toEqual({
      users: { kind: "jwt", ...jwt, jwks: { kind: "url", url: new URL("https://id.test/jwks") } },
      studioUser: false,
    });
    expect(authOf({ jwt: { ...jwt, jwks: "./keys.json" } })?.users).toMatchObject({
      jwks: { kind: "file", file: join(home, "keys.json") },
    });
    expect(authOf({ disable_studio_auth: true })).toBeUndefined();
    expect(authOf({})).toBeUndefined();
  });

  test("one that asks for encryption is refused: its data would be stored as plain data", () => {
    const why = "is not served: the data directory would hold as plain data what it asks to encrypt";
    const encryption = { path: "./encryption.ts:encryption" };
    expect(() => readConfig(write("encrypted.json", { graphs: {}, encryption }))).toThrow(
      `encrypted.json: encryption ${why}`,
    );
    const name = "LANGGRAPH_AES_KEY";
    const path = write("key.json", { graphs: {}, env: { [name]: "0123456789abcdef" } });
    expect(() => readConfig(path, {})).toThrow(`key.json: ${name} ${why}`);
    expect(readConfig(path, { [name]: "" }).graphs).toEqual({});
    expect(() => readConfig(write("plain.json", { graphs: {} }), { [name]: "key" })).toThrow(
      `plain.json: ${name} ${why}`,
    );
  });

  test("what is left out is told, with what is not known at all", () => {
    const path = write("notes.json", {
      graphs: {},
      node_loader: "ts-node",
      store: { index: { embed: "openai:text-embedding-3-small", dims: 3 }, cache: 1 },
      checkpointer: { backend: "mongo" },
      grahps: {},
    });
    expect(readConfig(path).notes).toEqual([
      "node_loader is left out: TypeScript is loaded by tsx",
      "store.cache is no key that Heddle knows",
      expect.stringMatching(/^checkpointer\.backend is left out: /),
      "grahps is no key that Heddle knows; did you mean graphs?",
      expect.stringMatching(/^store\.index is left out: .*"openai:text-embedding-3-small"/),
    ]);
  });

  test("keys that are not known are told wherever they stand, and graphs that are not served", () => {
    const path = write("notes2.json", {
      graphs: { a: "./a.ts", b: { path: "./a.ts", description: "b", entry: "x" } },
      http: { cors: { allow_orgins: ["x"], max_age: 1 } },
      webhooks: { allow_internl: true, headers: { "x-any": "1" }, url: { requir_https: true } },
      runs: { max_per_graph: { a: 1, aa: 1 } },
    });
    expect(readConfig(path).notes).toEqual([
      "graphs.b.entry is no key that Heddle knows",
      "http.cors.allow_orgins is no key that Heddle knows; did you mean http.cors.allow_origins?",
      "webhooks.allow_internl is no key that Heddle knows; did you mean webhooks.allow_internal?",
      "webhooks.url.requir_https is no key that Heddle knows; did you mean webhooks.url.require_https?",
      'runs.max_per_graph: there is no graph "aa"',
    ]);
  });

  test("how long items of the store live, and by what they are found", () => {
    const store = {
      ttl: { default_ttl: 0.5, refresh_on_read: false, sweep_interval_minutes: 1 },
      index: { embed: "./embed.ts:texts", dims: 3, fields: ["title", "parts[*].text"] },
    };
    const read = readConfig(write("store.json", { graphs: {}, store }));
    expect(read.notes).toEqual([]);
    expect(read.store).toEqual({
      ttl: store.ttl,
      index: { ...store.index, embed: { file: join(home, "embed.ts"), name: "texts" } },
    });
    const plain = { ttl: { default_ttl: null }, index: { embed: "/e.mjs", dims: 1 } };
    expect(readConfig(write("store2.json", { graphs: {}, store: plain })).store).toEqual({
      ttl: {},
      index: { embed: { file: "/e.mjs", name: "default" }, dims: 1, fields: ["$"] },
    });
  });

  test.each([
    [{ ttl: 5 }, "store.ttl must be an object"],
    [{ ttl: { default_ttl: 0 } }, "store.ttl.default_ttl must be a number of minutes, above 0"],
    [{ ttl: { refresh_on_read: 1 } }, "store.ttl.refresh_on_read must be true or false"],
    [
      { ttl: { sweep_interval_minutes: "5" } },
      "store.ttl.sweep_interval_minutes must be a number of minutes, above 0",
    ],
    [{ index: { dims: 3 } }, "store.index.embed must be"],
    [{ index: { embed: "./e.ts:e" } }, "store.index.dims must be a whole number"],
    [{ index: { embed: "./e.ts:e", dims: 3, fields: [""] } }, "store.index.fields must be a list of paths"],
    [{ index: { embed: "./e.py:e", dims: 3 } }, "store.index.embed is a Python file"],
  ])("a store of %j is refused", (store, why) => {
    const path = write("store3.json", { graphs: {}, store });
    expect(() => readConfig(path)).toThrow(why);
  });

  test("env may name a .env file, or what the environment has to set", () => {
    write("my.env", '# keys\nTOKEN=abc\nQUOTED="two words"\nEMPTY=\n');
    const { env, envFile } = readConfig(write("b.json", { graphs: {}, env: "my.env" }));
    expect(env).toEqual({ TOKEN: "abc", QUOTED: "two words", EMPTY: "" });
    expect(envFile).toBe(join(home, "my.env"));
    expect(readConfig(write("b2.json", { graphs: {}, env: ["TOKEN"] })).env).toEqual({});
  });

  test.each([
    ["\uFEFFFIRST=1\nB=2", { FIRST: "1", B: "2" }],
    ["K: colon", { K: "colon" }],
    ["export  A=1", { A: "1" }],
    ["A='x' # c\n  # B=2\nC=x#y", { A: "x", C: "x" }],
    ['A="un\nB=1', { A: '"un', B: "1" }],
    ["A=1\rB=2", { A: "1", B: "2" }],
    ['A="l1\nl2"', { A: "l1\nl2" }],
  ])("the .env file %j is read as on the official server", (text, env) => {
    write("other.env", text);
    expect(readConfig(write("other.json", { graphs: {}, env: "other.env" })).env).toEqual(env);
  });

  test("a .env file that is missing is noted, because Git ignores such files", () => {
    const { env, notes } = readConfig(write("b3.json", { graphs: {}, env: "nowhere.env" }));
    expect(env).toEqual({});
    expect(notes).toEqual([
      `env names "nowhere.env", but there is no file ${join(home, "nowhere.env")}; create it, or remove env`,
    ]);
  });

  test("who may come in, and to what", () => {
    const cors = {
      allow_origins: ["https://a.test"],
      allow_origin_regex: "https://.*",
      allow_methods: ["GET"],
      allow_headers: ["x-a"],
      allow_credentials: true,
      expose_headers: ["x-b"],
      max_age: 60,
    };
    const http = {
      allowed_hosts: ["h"],
      mount_prefix: "/api/",
      disable_store: true,
      disable_runs: false,
      cors,
    };
    expect(readConfig(write("door.json", { graphs: {}, http })).access).toEqual({
      hosts: ["h"],
      mount: "/api",
      disabled: ["store"],
      cors: {
        origins: ["https://a.test"],
        originPattern: "https://.*",
        methods: ["GET"],
        headers: ["x-a"],
        credentials: true,
        exposed: ["x-b"],
        maxAge: 60,
      },
    });
  });

  test("what runs may have, and how many there may be", () => {
    const runs = {
      max_concurrent: 8,
      max_per_graph: { a: 2 },
      max_queued: 9,
      max_queued_per_tenant: 4,
      max_queued_bytes: 2_000_000,
      max_state_bytes: 1_000_000,
      max_attempts: 5,
      grace_ms: 100,
      timeout: "90s",
    };
    const read = readConfig(write("runs.json", { graphs: { a: "./a.ts" }, runs }));
    expect(read.runs).toEqual({
      concurrent: { all: 8, perTenant: Infinity, perGraph: { a: 2 } },
      maxQueued: 9,
      maxQueuedPerTenant: 4,
      maxQueuedBytes: 2_000_000,
      maxStateBytes: 1_000_000,
      attempts: 5,
      grace: 100,
      timeout: 90_000,
    });
    expect(read.notes).toEqual([]);
  });

  test("what it leaves open is absent", () => {
    const path = write("c.json", { graphs: {} });
    expect(readConfig(path)).toEqual({ path, graphs: {}, env: {}, notes: [] });
  });

  test("says what models cost", () => {
    const prices = { "gpt-4o": { in: 2.5, out: 10 }, "org/small:1b": { in: 0, out: 0 } };
    const path = write("prices.json", { graphs: {}, dashboard: { prices } });
    expect(readConfig(path)).toMatchObject({ notes: [], dashboard: { prices } });
    expect(readConfig(write("free.json", { graphs: {} }))).not.toHaveProperty("dashboard");
  });

  test.each<[string, unknown, string]>([
    ["not JSON", "{ graphs: }", "is not JSON: "],
    [
      "comments",
      '{\n  // our graphs\n  "graphs": {} }',
      "is not JSON: JSON does not support comments (line 2, column 3)",
    ],
    [
      "a trailing comma",
      '{ "graphs": {\n  "a": "./a.ts",\n} }',
      "is not JSON: JSON does not support trailing commas (line 2, column 16)",
    ],
    [
      "a text with a BOM",
      "\uFEFF{",
      "is not JSON: Expected string in JSON but found end of file (line 1, column 2)",
    ],
    ["a list", [], "must hold a JSON object"],
    ["no graphs", {}, 'graphs is missing: it must be an object such as { "agent": "./agent.ts:default" }'],
    [
      "a misspelt graphs",
      { graph: { a: "./a.ts" } },
      'graphs is missing: it must be an object such as { "agent": "./agent.ts:default" }; there is "graph"',
    ],
    [
      "a graph with a wrong key",
      { graphs: { a: { graph: "./a.ts:x" } } },
      'graphs.a must be "./file.ts:export", or an object with "path", not one with "graph"',
    ],
    ["graphs as a list", { graphs: ["a"] }, "graphs must be an object"],
    ["a graph that is a number", { graphs: { a: 1 } }, 'graphs.a must be "./file.ts:export"'],
    ["a graph without a path", { graphs: { a: {} } }, "graphs.a must be"],
    ["an empty export", { graphs: { a: "./a.ts:" } }, "graphs.a names no export"],
    ["a graph without a name", { graphs: { "": "./a.ts" } }, 'graphs."" must have a name'],
    ["a Python graph", { graphs: { a: "./a.py:g" } }, "graphs.a is a Python file"],
    ["prices as a list", { graphs: {}, dashboard: { prices: [] } }, "dashboard.prices must be an object"],
    [
      "a price as a number",
      { graphs: {}, dashboard: { prices: { "gpt-4o": 2 } } },
      "dashboard.prices.gpt-4o must be an object with in and out",
    ],
    [
      "half a price",
      { graphs: {}, dashboard: { prices: { "gpt-4o": { in: 2 } } } },
      "dashboard.prices.gpt-4o.out must be a number, 0 or more: dollars for a million tokens",
    ],
    [
      "a price below nothing",
      { graphs: {}, dashboard: { prices: { "gpt-4o": { in: -2, out: 1 } } } },
      "dashboard.prices.gpt-4o.in must be a number, 0 or more",
    ],
    [
      "a price with a misspelt part",
      { graphs: {}, dashboard: { prices: { "gpt-4o": { input: 2, out: 1 } } } },
      "dashboard.prices.gpt-4o.input is no part of a price: these are in and out",
    ],
    ["http as a string", { graphs: {}, http: "x" }, "http must be an object"],
    ["a body limit of none", { graphs: {}, http: { max_body: 0 } }, "http.max_body must be"],
    ["a body limit as text", { graphs: {}, http: { max_body: "1mb" } }, "http.max_body must be"],
    ["http.app", { graphs: {}, http: { app: 1 } }, 'http.app must name an application, as "./http.ts:app"'],
    ["hosts as text", { graphs: {}, http: { allowed_hosts: "a" } }, "http.allowed_hosts must be an array"],
    [
      "a mount that is no path",
      { graphs: {}, http: { mount_prefix: "x" } },
      "http.mount_prefix must be a path",
    ],
    [
      "a part that is off by a word",
      { graphs: {}, http: { disable_runs: "yes" } },
      "http.disable_runs must be",
    ],
    ["cors as a list", { graphs: {}, http: { cors: [] } }, "http.cors must be an object"],
    [
      "an origin with a line break",
      { graphs: {}, http: { cors: { allow_origins: ["https://a\r\nb: c"] } } },
      "http.cors.allow_origins must be an array",
    ],
    [
      "a pattern that is none",
      { graphs: {}, http: { cors: { allow_origin_regex: "(" } } },
      "http.cors.allow_origin_regex must be",
    ],
    ["an age below 0", { graphs: {}, http: { cors: { max_age: -1 } } }, "http.cors.max_age must be"],
    [
      "an unknown sync",
      { graphs: {}, streams: { sync: "always" } },
      "streams.sync must be one of os, memory",
    ],
    ["a length of time that is none", { graphs: {}, streams: { ttl: "soon" } }, "streams.ttl must be"],
    ["stacks as a text", { graphs: {}, streams: { stacks: "yes" } }, "streams.stacks must be true or false"],
    ["no time at all", { graphs: {}, streams: { ttl: 0 } }, "streams.ttl must be"],
    ["auth without users", { graphs: {}, auth: { openapi: { a: 1 } } }, "auth names no users"],
    ["auth by a mistyped key", { graphs: {}, auth: { pth: "./auth.ts:auth" } }, "auth names no users"],
    ["auth in Python", { graphs: {}, auth: { path: "./auth.py:auth" } }, "auth.path is a Python file"],
    ["auth of two kinds", { graphs: {}, auth: { path: "./auth.ts", jwt: {} } }, "auth has both path and jwt"],
    [
      "Studio's user as text",
      { graphs: {}, auth: { path: "./a.ts", disable_studio_auth: "yes" } },
      "auth.disable_studio_auth must be",
    ],
    ["tokens of nobody", { graphs: {}, auth: { jwt: { audience: "a" } } }, "auth.jwt.issuer must be"],
    [
      "tokens for nobody",
      { graphs: {}, auth: { jwt: { issuer: "a", audience: [] } } },
      "auth.jwt.audience must",
    ],
    [
      "tokens without keys",
      { graphs: {}, auth: { jwt: { issuer: "a", audience: "b" } } },
      "auth.jwt.jwks must",
    ],
    [
      "keys that can be changed on their way",
      { graphs: {}, auth: { jwt: { issuer: "a", audience: "b", jwks: "http://evil.test/jwks" } } },
      "auth.jwt.jwks must be an https URL",
    ],
    [
      "a time for threads that is none",
      { graphs: {}, checkpointer: { ttl: { default_ttl: 0 } } },
      "checkpointer.ttl.default_ttl must be a number of minutes, above 0",
    ],
    [
      "an end of threads that is none",
      { graphs: {}, checkpointer: { ttl: { strategy: "hide" } } },
      "checkpointer.ttl.strategy must be one of delete, keep_latest",
    ],
    [
      "a sweep at no time",
      { graphs: {}, checkpointer: { ttl: { sweep_interval_minutes: "5" } } },
      "checkpointer.ttl.sweep_interval_minutes must be a number of minutes, above 0",
    ],
    ["no attempts at all", { graphs: {}, runs: { max_attempts: 0 } }, "runs.max_attempts must be"],
    ["grace as text", { graphs: {}, runs: { grace_ms: "1s" } }, "runs.grace_ms must be"],
    ["a time that is none", { graphs: {}, runs: { timeout: "soon" } }, "runs.timeout must be"],
    ["streams as a number", { graphs: {}, streams: 1 }, "streams must be an object"],
    ["env as a list of numbers", { graphs: {}, env: [1] }, "env must be"],
    ["env with a number", { graphs: {}, env: { A: 1 } }, "env.A must be a string"],
    [
      "env in a directory",
      { graphs: {}, env: "." },
      `env names ".", but the file ${home} cannot be read: EISDIR`,
    ],
  ])("%s is refused with its file and key", (_, content, message) => {
    const path = write("bad.json", content);
    const expected = { code: "config.invalid", message: expect.stringContaining(`${path}: ${message}`) };
    expect(() => readConfig(path)).toThrow(expect.objectContaining(expected));
  });

  test("with several graphs that are wrong is refused with a line for each", () => {
    const path = write("several.json", { graphs: { a: "./a.py:g", b: "./b.ts:g", c: 1 } });
    const lines = /several\.json: graphs\.a is a Python file.*\n.*several\.json: graphs\.c must be/;
    expect(() => readConfig(path)).toThrow(lines);
  });

  test("with several values that are wrong is refused with a line for each, and with its warnings", () => {
    const path = write("many.json", {
      grahps: {},
      port: 3000,
      graphs: { a: "./a.py" },
      http: { max_body: 0, mount_prefix: "x", disable_ui: 1, cors: { allow_origins: 1, max_age: "1" } },
      checkpointer: { ttl: { default_ttl: "7d", strategy: "x" } },
      store: { ttl: { default_ttl: "7d", refresh_on_read: 1 } },
      streams: 1,
      runs: { max_concurrent: 0, max_per_graph: { a: "2", b: "2" }, timeout: "soon" },
      webhooks: { timeout: "1", attempts: 0 },
      env: { A: 1, B: 2 },
    });
    const lines = [
      "streams must be an object",
      "http.mount_prefix must be a path",
      "http.cors.allow_origins must be an array",
      "http.cors.max_age must be a whole number of seconds",
      "http.disable_ui must be true or false",
      "http.max_body must be",
      "checkpointer.ttl.strategy must be one of",
      "checkpointer.ttl.default_ttl must be a number of minutes, above 0",
      "graphs.a is a Python file",
      "env.A must be a string",
      "env.B must be a string",
      "store.ttl.default_ttl must be a number of minutes, above 0",
      "store.ttl.refresh_on_read must be true or false",
      "webhooks.timeout must be",
      "webhooks.attempts must be",
      "runs.max_concurrent must be",
      "runs.max_per_graph.a must be",
      "runs.max_per_graph.b must be",
      "runs.timeout must be",
      "grahps is no key that Heddle knows; did you mean graphs?",
      "port is left out: --port or the variable PORT sets it",
    ];
    let message = "";
    try {
      readConfig(path);
    } catch (error) {
      ({ message } = error as Error);
    }
    expect(message.split("\n")).toEqual(lines.map((line) => expect.stringContaining(`${path}: ${line}`)));
  });

  test("one that is not there is refused by name", () => {
    expect(() => readConfig(join(home, "none.json"))).toThrow("none.json: there is no such file");
  });
});

describe("without --config", () => {
  test("heddle.json is taken before langgraph.json, and neither is told", () => {
    const empty = join(home, "empty");
    mkdirSync(empty);
    expect(() => findConfig(empty)).toThrow(`There is no heddle.json and no langgraph.json in ${empty}`);
    writeFileSync(join(empty, "langgraph.json"), "{}");
    expect(findConfig(empty)).toBe(join(empty, "langgraph.json"));
    writeFileSync(join(empty, "heddle.json"), "{}");
    expect(findConfig(empty)).toBe(join(empty, "heddle.json"));
  });

  test("a directory stands for the file in it", () => {
    const app = join(home, "app");
    mkdirSync(app);
    writeFileSync(join(app, "langgraph.json"), "{}");
    expect(configFileAt(app)).toBe(join(app, "langgraph.json"));
    expect(configFileAt("./none.json")).toBe("./none.json");
  });
});
