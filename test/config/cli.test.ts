import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { Agent, type IncomingMessage, request } from "node:http";
import { type AddressInfo, createConnection, createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Client } from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { WebSocket } from "ws";
import { build, heddle, Running } from "./process.ts";
import { Home, install } from "./project.ts";
import { describeOverEachTransport } from "../transport/each.ts";

const home = mkdtempSync(join(tmpdir(), "heddle-cli-"));
install(home);
// Processes start slowly on a busy machine.
vi.setConfig({ testTimeout: 60_000 });
beforeAll(build, 120_000);
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** Writes a project and returns its configuration file. */
function project(name: string, files: Record<string, string | object>): string {
  const folder = join(home, name);
  for (const [path, content] of Object.entries(files)) {
    const file = join(folder, path);
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  }
  return join(folder, "heddle.json");
}

/** A node that writes this text. */
const body = (says: string) => `{
  state: { said: list() },
  nodes: { say: async () => ({ said: [${says}] }) },
  edges: { start: "say" },
}`;

const data = (name: string) => join(home, "data", name);
const connect = ({ url }: Running) => new Client({ apiUrl: url, callerOptions: { maxRetries: 0 } });

async function say(server: Running, graph: string): Promise<unknown> {
  const client = connect(server);
  const { thread_id } = await client.threads.create();
  const { said } = (await client.runs.wait(thread_id, graph, { input: {} })) as { said?: unknown[] };
  return said?.[0];
}

describe("graph files", () => {
  test("of every kind are loaded, with their own project's modules and the running heddle", async () => {
    const typescript = `
      import { graph, list } from "heddle";
      import { box } from "./shared.ts";
      const text: string = "typescript " + box.n++;
      export default graph(${body("text + typeof graph.name")});
      export const named = graph(${body("text")});
    `;
    const shared = {
      "shared.ts": "export const box: { n: number } = { n: 1 };",
      "a.ts": typescript,
      "b.ts": typescript,
    };
    const folders = ["esm", "commonjs", "plain"];
    // The package is not installed in these projects.
    const bare = new Home();
    onTestFinished(() => bare.remove());
    for (const folder of folders) bare.project(folder, shared);
    bare.project("esm", { "package.json": { type: "module" } });
    bare.project("commonjs", { "package.json": { type: "commonjs" } });
    bare.project("plain", { "package.json": {} });
    const config = bare.project("all", {
      "package.json": {},
      "a.mjs": `import { graph, list } from "heddle"; export const one = graph(${body('"mjs"')});`,
      "a.cjs": `const { graph, list } = require("heddle"); exports.one = graph(${body('"cjs"')});`,
      "whole.cjs": `const { graph, list } = require("heddle"); module.exports = graph(${body('"whole"')});`,
      "same.mjs": `
        import { createRequire } from "node:module";
        import { graph, list } from "heddle";
        const other = createRequire(import.meta.url)("heddle");
        export default graph(${body("String(other.graph === graph)")});
      `,
      "heddle.json": {
        graphs: {
          mjs: "./a.mjs:one",
          cjs: "./a.cjs:one",
          whole: "./whole.cjs",
          same: "./same.mjs:default",
          ...Object.fromEntries(
            folders.flatMap((f) => [
              [`${f}-a`, `../${f}/a.ts`],
              [`${f}-b`, `../${f}/b.ts:named`],
            ]),
          ),
        },
      },
    });
    const server = await Running.start(["--config", config, "--data", data("kinds")]);
    expect(await say(server, "mjs")).toBe("mjs");
    expect(await say(server, "cjs")).toBe("cjs");
    expect(await say(server, "whole")).toBe("whole");
    expect(await say(server, "same")).toBe("true");
    for (const folder of folders) {
      expect(await say(server, `${folder}-a`)).toBe("typescript 1string");
      // A module that two graphs import is loaded once.
      expect(await say(server, `${folder}-b`)).toBe("typescript 2");
    }
  });

  test("each that is not there, has no such export, throws or is no graph is named, and nothing is served", () => {
    const graphs = { a: "./none.js:x", b: "./a.mjs:x", c: "./bad.mjs:x", d: "./a.mjs:y" };
    const config = project("bad", {
      "a.mjs": "export const y = 1;",
      "bad.mjs": "throw new Error('no luck');",
      "heddle.json": { graphs },
    });
    const { status, stdout, stderr } = heddle([
      "start",
      "--port",
      "0",
      "--config",
      config,
      "--data",
      data("bad"),
    ]);
    expect(stderr.trimEnd().split("\n")).toEqual([
      expect.stringMatching(/^heddle: graphs\.a: there is no file .*none\.js$/),
      expect.stringMatching(/^graphs\.b: .*a\.mjs exports no "x"; it exports: y/),
      expect.stringMatching(/^graphs\.c: .*bad\.mjs cannot be loaded: no luck/),
      expect.stringMatching(/^graphs\.d: the export "y" of .*a\.mjs is no graph: .*it exports: y/),
    ]);
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
  });

  test("env of the file is theirs, and the environment's own wins", async () => {
    const config = project("env", {
      "a.mjs": `import { graph, list } from "heddle";
        export default graph(${body('process.env.FROM_FILE + " " + process.env.FROM_BOTH')});`,
      "heddle.json": { graphs: { a: "./a.mjs" }, env: { FROM_FILE: "file", FROM_BOTH: "file" } },
    });
    const server = await Running.start(["--config", config, "--data", data("env")], {
      FROM_BOTH: "environment",
    });
    expect(await say(server, "a")).toBe("file environment");
  });
});

test("the official client without an address, in a graph, reaches the server that runs it", async () => {
  const config = project("client", {
    "a.mjs": `import { graph, list } from "heddle";
      import { Client } from "@langchain/langgraph-sdk";
      export default graph(${body("(await new Client().assistants.search({ graphId: 'a' }))[0].name")});`,
    "heddle.json": { graphs: { a: "./a.mjs" } },
  });
  const modules = join(dirname(config), "node_modules/@langchain");
  mkdirSync(modules, { recursive: true });
  const sdk = join(import.meta.dirname, "../../node_modules/@langchain/langgraph-sdk");
  symlinkSync(sdk, join(modules, "langgraph-sdk"));
  const server = await Running.start(["--config", config, "--data", data("client")]);
  expect(await say(server, "a")).toBe("a");
});

describe("the command", () => {
  test("refuses what it does not know with exit code 2", () => {
    const { status, stderr } = heddle(["start", "--prot", "1"]);
    expect({ status, stderr }).toEqual({
      status: 2,
      stderr: "heddle: Unknown option '--prot'; did you mean --port?\nTry: heddle --help\n",
    });
  });

  test("helps, and tells its version", () => {
    expect(heddle(["--help"])).toMatchObject({
      status: 0,
      stdout: expect.stringContaining("Usage: heddle COMMAND"),
    });
    expect(heddle(["repair", "--help"])).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^Usage: heddle repair \[options\]\n[^]*--accept/),
    });
    expect(heddle(["--version"])).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
    });
  });

  test("without a configuration says which it looked for", () => {
    const { status, stderr } = heddle(["start"], { cwd: home });
    expect(stderr).toContain("There is no heddle.json and no langgraph.json");
    expect(status).toBe(1);
  });
});

describe("a running server", () => {
  const steps = `
    import { graph, list } from "heddle";
    // Like a pooled connection, it does not keep the process alive.
    const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms).unref());
    const step = (name, ms = 400) => async () => { console.log("at " + name); await sleep(ms); return { said: [name] }; };
    export const long = graph({ state: { said: list() }, nodes: { one: step("long", 7000) }, edges: { start: "one" } });
    export const slow = graph({
      state: { said: list() },
      nodes: { one: step("one"), two: step("two"), three: step("three") },
      edges: { start: "one", one: "two", two: "three" },
    });
    export const stray = graph({
      state: { said: list() },
      nodes: { say: async () => {
        void Promise.reject(new Error("left behind"));
        setTimeout(() => { throw new Error("in a timer"); }, 1);
        await sleep(20);
        return { said: ["still here"] };
      } },
      edges: { start: "say" },
    });
  `;
  const config = () =>
    project("steps", {
      "g.mjs": steps,
      "heddle.json": { graphs: { slow: "./g.mjs:slow", long: "./g.mjs:long", stray: "./g.mjs:stray" } },
    });

  async function restart(server: Running, args: readonly string[]): Promise<Running> {
    expect(await server.stop()).toBe(0);
    expect(server.output).toContain('"message":"stopped"');
    return Running.start(args);
  }

  describeOverEachTransport("a transport that was asked for,", (kind) => {
    test("prints one line with its address, and serves there", async () => {
      const args = ["--config", config(), "--data", data(kind), "--transport", kind];
      const server = await Running.start(args);
      expect(await (await fetch(`${server.url}/ok`)).json()).toEqual({ ok: true });
      expect(server.output).toContain(`"transport":"${kind}"`);
      expect(await server.stop("SIGINT")).toBe(0);
    });
  });

  test("is not harmed by what a node leaves behind", async () => {
    const server = await Running.start(["--config", config(), "--data", data("stray")]);
    expect(await say(server, "stray")).toBe("still here");
    expect(await say(server, "stray")).toBe("still here");
    expect(server.output).toContain("left behind");
    expect(server.output).toContain("in a timer");
    expect(await server.stop()).toBe(0);
  });

  test("stops in good order, and the next one goes on where it was", async () => {
    const args = ["--config", config(), "--data", data("stop")];
    const first = await Running.start(args);
    const client = connect(first);
    const { thread_id } = await client.threads.create();
    const create = (options = {}) => client.runs.create(thread_id, "slow", { input: {}, ...options });
    const [run, next] = [await create(), await create({ multitaskStrategy: "enqueue" })];
    expect(await first.stop()).toBe(0);
    expect(first.output).toMatch(/"message":"stopped".*"unfinished_runs":2/);

    const second = await Running.start(args);
    const words = ["one", "two", "three"];
    expect(await connect(second).runs.join(thread_id, run.run_id)).toEqual({ said: words });
    expect(await connect(second).runs.join(thread_id, next.run_id)).toEqual({ said: [...words, ...words] });
    expect((await connect(second).runs.get(thread_id, next.run_id)).status).toBe("success");
    expect(await second.stop()).toBe(0);
    expect(second.output).toMatch(/"message":"stopped"\}/);
  });

  test.each(["SIGHUP", "SIGTERM"] as const)(
    "%s is a stop in good order, and one line tells of each request that it refuses",
    async (signal) => {
      const args = ["--config", config(), "--data", data(`signal-${signal}`)];
      const server = await Running.start(args);
      const client = connect(server);
      const { thread_id } = await client.threads.create();
      await client.runs.create(thread_id, "slow", { input: {} });
      const stopped = server.stop(signal);
      await server.printed('"message":"stopping"');
      // It may have ended meanwhile.
      const refused = await fetch(`${server.url}/threads`, { method: "POST" }).then(
        ({ status }) => status,
        () => 0,
      );
      expect([0, 503]).toContain(refused);
      expect(await stopped).toBe(0);
      expect(server.output).toContain('"message":"stopped"');
      expect(server.output).not.toContain('"level":"error"');
    },
  );

  describeOverEachTransport("a stop,", (kind) => {
    test("refuses new work on old connections and on new ones, and a second signal ends it at once", async () => {
      const args = ["--config", config(), "--data", data(`twice-${kind}`), "--transport", kind];
      const server = await Running.start(args);
      const client = connect(server);
      const { thread_id } = await client.threads.create();
      await client.runs.create(thread_id, "long", { input: {} });
      await server.printed("at long");
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const ask = async (method: string, path: string): Promise<readonly unknown[]> => {
        const asked = request(server.url + path, { agent, method }).end();
        const [answer] = (await once(asked, "response")) as [IncomingMessage];
        answer.resume();
        await once(answer, "end");
        return [answer.statusCode, answer.headers["retry-after"]];
      };
      expect(await ask("GET", "/ok")).toEqual([200, undefined]);
      const stopped = server.stop();
      await server.printed('"message":"stopping"');
      await server.printed(
        "waiting up to 8 s for the running nodes of 1 run; a second signal (Ctrl-C) ends it at once",
      );
      // The first one on the open connection, each further one on a new connection.
      for (let i = 0; i < 3; i++) {
        expect(await ask("POST", "/threads")).toEqual([503, expect.stringMatching(/^\d+$/)]);
        expect(await ask("GET", "/ready")).toEqual([503, expect.stringMatching(/^\d+$/)]);
        expect(await ask("GET", `/threads/${thread_id}`)).toEqual([200, undefined]);
      }
      const began = performance.now();
      void server.stop();
      expect(await stopped).toBe(143);
      // The stop did not wait for the end of the node.
      expect(performance.now() - began).toBeLessThan(3_000);
      expect(server.output).not.toContain('"level":"error"');
      agent.destroy();
    });
  });

  describeOverEachTransport("a stop with 120 idle connections,", (kind) => {
    test("of readers, sockets and clients between two requests, takes well under a second", async () => {
      const args = ["--config", config(), "--data", data(`idle-${kind}`), "--transport", kind];
      const server = await Running.start(args);
      const { thread_id } = await connect(server).threads.create();
      const { host, port } = new URL(server.url);
      const ask = (path: string) => `GET ${path} HTTP/1.1\r\nhost: ${host}\r\n\r\n`;
      const open = async (text: string): Promise<void> => {
        const client = createConnection({ host: "127.0.0.1", port: Number(port) });
        onTestFinished(() => void client.destroy());
        client.on("error", () => undefined);
        client.write(text);
        if (text !== "") await once(client, "data");
        client.pause();
      };
      const openSocket = async (): Promise<void> => {
        const socket = new WebSocket(`${server.url.replace("http", "ws")}/threads/${thread_id}/stream`);
        onTestFinished(() => socket.terminate());
        await once(socket, "open");
      };
      const each = () => [
        open(ask("/ok")),
        open(ask(`/threads/${thread_id}/stream`)),
        open(""),
        openSocket(),
      ];
      await Promise.all(Array.from({ length: 30 }, each).flat());
      const began = performance.now();
      expect(await server.stop("SIGINT")).toBe(0);
      // 0.1 to 0.8 s on a machine of two cores at load 5.
      expect(performance.now() - began).toBeLessThan(3_000);
      expect(server.output).not.toContain("waiting up to");
    });
  });

  test("that `npm start` began takes the place of the shell, so that a signal reaches it", async () => {
    const manifest = readFileSync(join(import.meta.dirname, "../../package.json"), "utf8");
    const { scripts } = JSON.parse(manifest) as { readonly scripts: { readonly start: string } };
    const server = await Running.script(scripts.start, { PORT: "0", HEDDLE_DATA: data("npm-start") });
    expect(await server.stop()).toBe(0);
    expect(server.output).toContain('"message":"stopped"');
  });

  test("waits for a step although nobody is connected, then leaves it to the next one", async () => {
    const args = ["--config", config(), "--data", data("alone")];
    const first = await Running.start(args);
    const client = connect(first);
    const { thread_id } = await client.threads.create();
    const { run_id } = await client.runs.create(thread_id, "slow", { input: {} });
    await first.printed("at one");
    const second = await restart(first, args);
    // Nothing but the step keeps the process alive, and Node does not count that.
    await second.printed("at two");
    const third = await restart(second, args);
    const joined = await connect(third).runs.join(thread_id, run_id);
    expect(joined).toEqual({ said: ["one", "two", "three"] });
    expect(third.output).toContain("took up threads with unfinished runs");
    expect(third.output).not.toContain("at two");
  });

  test("keeps others off its data directory, with one line", async () => {
    const args = ["--config", config(), "--data", data("locked")];
    await Running.start(args);
    const { status, stdout, stderr } = heddle(["start", "--port", "0", ...args]);
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr.trimEnd().split("\n")).toEqual([expect.stringContaining(data("locked"))]);
  });

  test("refuses a data directory that cannot be made, with one line", () => {
    const { status, stdout, stderr } = heddle([
      "start",
      "--port",
      "0",
      "--config",
      config(),
      "--data",
      "/proc/heddle/data",
    ]);
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr.trimEnd().split("\n")).toEqual([
      expect.stringContaining("The directory /proc/heddle/data cannot be made"),
    ]);
  });

  test.each([
    ["start", "heddle.json"],
    ["dev", "langgraph.json"],
    ["start", "production.json"],
  ])("%s refuses the project's own directory for its data, and writes nothing there: %s", (command, name) => {
    const folder = `root-${name}`;
    project(folder, {
      "a.mjs": `import { graph, list } from "heddle"; export default graph(${body("1")});`,
      [name]: { graphs: { a: "./a.mjs" } },
    });
    const cwd = join(home, folder);
    const { status, stdout, stderr } = heddle([command, "--port", "0", "--config", name, "--data", "."], {
      cwd,
    });
    expect(stderr.trimEnd().split("\n").at(-1)).toBe(
      `heddle: The data directory ${cwd} holds the configuration file ${name}; name a directory of its own with --data, such as ${join(cwd, ".heddle")}`,
    );
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(readdirSync(cwd).toSorted()).toEqual(["a.mjs", name].toSorted());
  });

  test("refuses a data directory with a langgraph.json of another project, which a heddle.json would replace", () => {
    const other = project("of-langgraph", { "langgraph.json": { graphs: {} } });
    const { status, stderr } = heddle([
      "start",
      "--port",
      "0",
      "--config",
      config(),
      "--data",
      join(other, ".."),
    ]);
    expect(status).toBe(1);
    expect(stderr).toContain("holds the configuration file langgraph.json");
    expect(readdirSync(join(other, ".."))).toEqual(["langgraph.json"]);
  });

  test("goes on with the data that stand in the project's directory already", async () => {
    const file = project("data-in-root", {
      "a.mjs": `import { graph, list } from "heddle"; export default graph(${body("1")});`,
      "project.json": { graphs: { a: "./a.mjs" } },
    });
    const root = join(file, "..");
    const args = ["--config", join(root, "project.json"), "--data"];
    const first = await Running.start([...args, data("in-root")]);
    const { thread_id } = await connect(first).threads.create();
    expect(await first.stop()).toBe(0);
    cpSync(data("in-root"), root, { recursive: true });
    const second = await Running.start([...args, root]);
    expect(await connect(second).threads.get(thread_id)).toMatchObject({ thread_id });
  });

  test.each(["start", "dev"])("%s refuses a configuration without graphs, with one line", (command) => {
    const file = project("no-graphs", { "heddle.json": { graphs: {} } });
    const args = ["--port", "0", "--config", file, "--data", data("no-graphs")];
    const { status, stdout, stderr } = heddle([command, ...args]);
    expect({ status, stdout, stderr }).toEqual({
      status: 1,
      stdout: "",
      stderr: `heddle: ${file}: graphs names no graph; add one, such as { "agent": "./agent.ts:default" }\n`,
    });
  });

  test("warns once of a variable that it does not know, also of one of the file's, and not of its value", async () => {
    const file = project("variables", {
      "a.mjs": `import { graph, list } from "heddle"; export default graph(${body("1")});`,
      "heddle.json": { graphs: { a: "./a.mjs" }, env: { HEDDLE_WORKER: "2" } },
    });
    const args = ["--config", file, "--data", data("variables")];
    const server = await Running.start(args, { HEDDLE_API_KEYZ: "sesame" });
    const warnings = server.output.split("\n").filter((line) => line.includes('"level":"warn"'));
    expect(warnings).toEqual([
      expect.stringContaining("HEDDLE_API_KEYZ is none of Heddle's variables; did you mean HEDDLE_API_KEYS?"),
      expect.stringContaining("HEDDLE_WORKER is none of Heddle's variables; did you mean HEDDLE_WORKERS?"),
    ]);
    expect(server.output).not.toContain("sesame");
  });

  /** A port at which another program listens. */
  async function takenPort(): Promise<string> {
    const holder = createServer().listen(0, "127.0.0.1");
    await once(holder, "listening");
    onTestFinished(() => void holder.close());
    return String((holder.address() as AddressInfo).port);
  }

  test.each<[string, (port: string) => string[], (port: string) => Record<string, string>]>([
    ["a flag", (port) => ["--port", port], () => ({})],
    ["HEDDLE_PORT", () => [], (port) => ({ HEDDLE_PORT: port })],
    ["PORT", () => [], (port) => ({ PORT: port })],
  ])("refuses a port that %s asks for and that is taken, with one line", async (_, args, env) => {
    const port = await takenPort();
    const { status, stdout, stderr } = heddle(
      ["start", "--config", config(), "--data", data("port-2"), ...args(port)],
      { env: env(port) },
    );
    expect({ status, stdout, stderr }).toEqual({
      status: 1,
      stdout: "",
      stderr: `heddle: Cannot listen at 127.0.0.1:${port}: port ${port} is taken; choose another port with --port (0: any free one)\n`,
    });
  });

  test("refuses a port that the file's environment asks for and that is taken", async () => {
    const port = await takenPort();
    const asking = project("asking for a port", {
      "a.mjs": `import { graph, list } from "heddle"; export default graph(${body("1")});`,
      "heddle.json": { graphs: { a: "./a.mjs" }, env: { PORT: port } },
    });
    const { status, stderr } = heddle(["start", "--config", asking, "--data", data("port-2")]);
    expect([status, stderr]).toEqual([
      1,
      expect.stringContaining(`port ${port} is taken; choose another port with --port`),
    ]);
  });

  test.each(["dev", "start"])(
    "`heddle %s` takes the next port where nobody asked for one",
    async (command) => {
      const holder = createServer();
      // Another program may have taken the port already, which serves the test as well.
      await new Promise((resolve) =>
        holder.once("error", resolve).listen(2024, "127.0.0.1", () => resolve(0)),
      );
      onTestFinished(() => void holder.close());
      const script = `exec "${process.execPath}" dist/src/cli.js ${command} --config "${config()}" --data "${data(`next-${command}`)}"`;
      const server = await Running.script(script, {});
      const { port } = new URL(server.url);
      expect(Number(port)).toBeGreaterThan(2024);
      expect(server.output).toMatch(/^Port 2024 is taken: Heddle \S+ listens on http:\/\/127\.0\.0\.1:\d+$/m);
      expect((await fetch(`${server.url}/ok`)).status).toBe(200);
      // The data directory contains the address while the server runs.
      const file = join(data(`next-${command}`), "url");
      expect(readFileSync(file, "utf8")).toBe(`${server.url}\n`);
      const inspected = heddle(["inspect", "--data", data(`next-${command}`)]);
      expect(inspected.stdout).toBe(`${server.url}/inspector\n`);
      expect(await server.stop()).toBe(0);
      expect(existsSync(file)).toBe(false);
    },
  );

  describeOverEachTransport("a host at which it cannot listen,", (transport) => {
    const refusal = (host: string) => {
      const args = ["--transport", transport, "--insecure", "--port", "0", "--host", host];
      const { status, stderr } = heddle(["start", "--config", config(), "--data", data("host"), ...args]);
      return { status, lines: stderr.trimEnd().split("\n") };
    };
    test("is refused with one line", () => {
      const hint = "; --host names the address to listen on, 0.0.0.0 all of this machine";
      expect(refusal("no-such-host.invalid")).toEqual({
        status: 1,
        lines: [expect.stringMatching(new RegExp(`"no-such-host\\.invalid".*${hint}$`))],
      });
      expect(refusal("192.0.2.1")).toEqual({
        status: 1,
        lines: [`heddle: Cannot listen at 192.0.2.1:0: 192.0.2.1 is not an address of this machine${hint}`],
      });
    });
  });

  test("serves the demo as it is, from its sources", async () => {
    const demo = join(import.meta.dirname, "..", "..", "src", "demo", "heddle.json");
    const server = await Running.start(["--config", demo, "--data", data("demo")]);
    const client = connect(server);
    const { thread_id } = await client.threads.create();
    const paused = await client.runs.wait(thread_id, "approval", { input: { topic: "tea" } });
    expect(paused).toHaveProperty("__interrupt__");
  });
});

describe("keys", () => {
  const graphs = { a: "./a.mjs:default" };
  const files = { "a.mjs": `import { graph, list } from "heddle"; export default graph(${body("1")});` };
  const ask = async ({ url }: Running, headers: Record<string, string> = {}) =>
    (await fetch(`${url}/threads`, { method: "POST", body: "{}", headers })).status;

  test.each([
    ["the environment", {}, { HEDDLE_API_KEYS: "one, acme:two" }],
    ["the file's environment", { env: { HEDDLE_API_KEYS: "one,acme:two" } }, {}],
  ])("from %s close the server, also to other machines, and are never printed", async (name, extra, env) => {
    const config = project(`keys of ${name}`, { ...files, "heddle.json": { graphs, ...extra } });
    const args = ["--config", config, "--data", data(`keys of ${name}`), "--host", "0.0.0.0"];
    const server = await Running.start(args, { ...env, HEDDLE_REQUEST_LOG: "info" });
    expect([await ask(server), await ask(server, { "x-api-key": "two" })]).toEqual([401, 200]);
    await expect.poll(() => server.output).toContain('"tenant":"acme"');
    expect(server.output).not.toMatch(/\b(one|two)\b/);
  });

  test("without one, other machines are not let in unless that is meant", async () => {
    const config = project("open", { ...files, "heddle.json": { graphs } });
    const args = ["--config", config, "--data", data("open"), "--host", "0.0.0.0"];
    const refused = heddle(["start", "--port", "0", ...args]);
    expect(refused.status).toBe(1);
    expect(refused.stderr).toContain("would let other machines drive this server without a key");
    expect(await ask(await Running.start([...args, "--insecure"]))).toBe(200);
  });

  test("a list that holds none is refused, not taken for an open server", () => {
    const config = project("none", { ...files, "heddle.json": { graphs } });
    const refused = heddle(["start", "--port", "0", "--config", config], { env: { HEDDLE_API_KEYS: " , " } });
    expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining("holds none")]);
  });
});
