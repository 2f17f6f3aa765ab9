/**
 * What a new user does: installs the package as it would be published in an empty project, with the README's first
 * graph as it is printed there. On this Node, and on others that npm has.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { scheduler } from "node:timers/promises";
import { DockerfileParser } from "dockerfile-ast";
import { chromium } from "playwright-core";

const root = join(import.meta.dirname, "..", "..");
const home = mkdtempSync(join(tmpdir(), "heddle-packed-"));
const project = join(home, "project");
const chromiumPath = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"].find((path) =>
  existsSync(path),
);

function npm(cwd: string, ...args: readonly string[]): string {
  return execFileSync("npm", [...args, "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd,
    encoding: "utf8",
    env: { ...process.env, npm_config_ignore_scripts: "" },
  }).trim();
}

/** A code block of a page, found by its beginning. */
function printed(language: string, start: string, page = "README.md"): string {
  const text = readFileSync(join(root, page), "utf8");
  const blocks = [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)];
  const found = blocks.find(([, kind, code = ""]) => kind === language && code.startsWith(start))?.[2];
  if (found === undefined) throw new Error(`${page} prints no ${language} that starts with ${start}`);
  return found;
}

async function post(url: string, body: object): Promise<Record<string, unknown>>;
async function post(url: string, body: object, as: "text"): Promise<string>;
async function post(url: string, body: object, as?: "text"): Promise<unknown> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  return as === "text" ? response.text() : response.json();
}

/** Runs the README's first graph to its end. */
async function tryOut(url: string): Promise<void> {
  const { thread_id } = await post(`${url}/threads`, {});
  const runs = `${url}/threads/${String(thread_id)}/runs/wait`;
  const paused = await post(runs, { assistant_id: "review", input: { topic: "tea" } });
  if (!("__interrupt__" in paused)) throw new Error(`it did not pause: ${JSON.stringify(paused)}`);
  const ended = await post(runs, { assistant_id: "review", command: { resume: { ok: true } } });
  if (!JSON.stringify(ended).includes('"sent"')) throw new Error(`it did not end: ${JSON.stringify(ended)}`);
}

async function textOf(url: string): Promise<string> {
  const response = await fetch(url);
  const text = await response.text();
  if (!response.ok || text === "") throw new Error(`${url}: ${response.status} ${text}`);
  return text;
}

/** The parts that a server loads on demand: in a package their files may be elsewhere than in a clone, or missing. */
async function tryLazyParts(url: string): Promise<void> {
  const script = await post(`${url}/ui/review`, { name: "card" }, "text");
  if (!script.includes("/ui/review/entrypoint.js")) throw new Error(`no component: ${script}`);
  const component = await textOf(`${url}/ui/review/entrypoint.js`);
  if (!component.includes("__LGUI_review")) throw new Error(`no component: ${component.slice(0, 200)}`);

  await fetch(`${url}/store/items`, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ namespace: ["tea"], key: "green", value: { text: "green tea" } }),
  });
  const found = await post(`${url}/store/items/search`, { namespace_prefix: ["tea"], query: "tea" });
  if (!JSON.stringify(found).includes('"score":1')) throw new Error(`not searched: ${JSON.stringify(found)}`);

  for (const graph of ["hosted", "packed"]) {
    const { thread_id } = await post(`${url}/threads`, {});
    const ended = await post(`${url}/threads/${String(thread_id)}/runs/wait`, {
      assistant_id: graph,
      input: { text: "a" },
    });
    if (ended["text"] !== "ab") throw new Error(`${graph} did not run: ${JSON.stringify(ended)}`);
  }
  const { state_schema } = JSON.parse(await textOf(`${url}/assistants/hosted/schemas`)) as {
    readonly state_schema: unknown;
  };
  if (!JSON.stringify(state_schema).includes('"text":{"type":"string"}'))
    throw new Error(`its types are not read: ${JSON.stringify(state_schema)}`);
  for (const path of [
    "/dashboard/dashboard.js",
    "/dashboard/elk-worker.js",
    "/docs",
    "/openapi.json",
    "/metrics",
    "/inspect/machines",
  ])
    await textOf(url + path);
}

/** Starts a server, and checks it at the address that it prints. */
async function serve(
  title: string,
  command: string,
  args: readonly string[],
  check = tryOut,
  cwd = project,
): Promise<void> {
  const child: ChildProcess = spawn(command, [...args, "--port", "0"], { cwd, detached: true });
  const said = { text: "" };
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (said.text += text));
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (said.text += text));
  const ended = once(child, "exit");
  try {
    let url: string | undefined;
    while (url === undefined) {
      if (child.exitCode !== null) throw new Error(`${title} ended:\n${said.text}`);
      url = /listens on (http:\S+)/.exec(said.text)?.[1];
      await Promise.race([scheduler.wait(50), ended]);
    }
    await check(url);
    process.stdout.write(`${title}: ${/"transport":"(\w+)"/.exec(said.text)?.[1]}, it runs\n`);
  } finally {
    // npx is in between, so the whole process group is ended.
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, "SIGTERM");
    await ended;
  }
}

/** A project that uses what the first one does not: components, an embedder, a LangGraph.js graph, worker threads. */
function writeLazyProject(): void {
  const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    readonly devDependencies: { readonly [name: string]: string };
  };
  const langchain = ["@langchain/langgraph", "@langchain/core"].map(
    (name) => `${name}@${devDependencies[name]}`,
  );
  // A project's own compiler, of a version that can be called: types become schemas.
  npm(project, "install", ...langchain, "typescript@5.9.3");
  const files = {
    "all.json": JSON.stringify({
      graphs: {
        review: "./graphs/review.ts",
        hosted: "./graphs/hosted.ts:hosted",
        packed: "./graphs/packed.ts:packed",
      },
      ui: { review: "./ui.tsx" },
      store: { index: { embed: "./embed.ts:embed", dims: 1 } },
      nodes: { workers: 1 },
    }),
    "ui.tsx": "export default { card: ({ text }: { text: string }) => <b>{text}</b> };\n",
    "embed.ts": "export const embed = async (texts: string[]) => texts.map(() => [1]);\n",
    "graphs/packed.ts": `import { graph, value } from "heddle";
export const packed = graph({
  state: { text: value("") },
  nodes: { add: async ({ text }) => ({ text: text + "b" }) },
  edges: { start: "add" },
});
`,
    "graphs/hosted.ts": `import { Annotation, StateGraph } from "@langchain/langgraph";
export const hosted = new StateGraph(Annotation.Root({ text: Annotation<string> }))
  .addNode("add", ({ text }) => ({ text: text + "b" }))
  .addEdge("__start__", "add")
  .compile();
`,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(project, name), text);
}

/** Checks the project that `heddle init` makes: its test, its types, its server; and the image that `heddle build` describes. */
async function tryNewProject(cli: string, tarball: string): Promise<void> {
  const made = join(home, "made");
  const heddle = (...args: readonly string[]) =>
    execFileSync(process.execPath, [cli, ...args], { cwd: existsSync(made) ? made : home, encoding: "utf8" });
  heddle("init", made);
  // As a file of the project: `heddle build` copies it into the image. A package in a registry would be found from
  // everywhere.
  mkdirSync(join(made, "vendor"));
  cpSync(tarball, join(made, "vendor", basename(tarball)));
  npm(made, "install", `./vendor/${basename(tarball)}`);
  npm(made, "test");
  npm(made, "run", "types");
  await serve(
    "heddle dev in the project that heddle init makes",
    "npx",
    ["heddle", "dev"],
    tryApproval,
    made,
  );
  // Without a lock file: `npm ci` requests packages of all platforms, which not every registry has.
  rmSync(join(made, "package-lock.json"));
  heddle("build", "--compose");
  await serve(
    "the image that heddle build describes",
    ...imageOf(made),
    tryApproval,
    join(home, "image/app"),
  );
}

/** Runs the steps of a Dockerfile in an empty folder; returns its command, with paths and address of this machine. */
function imageOf(made: string): [command: string, args: string[]] {
  const file = DockerfileParser.parse(readFileSync(join(made, "Dockerfile"), "utf8"));
  const image = join(home, "image");
  const at = (path: string) => join(image, path);
  // Stages share the folder: what the first one installs is copied to the same place.
  let directory = "/";
  let command: string[] = [];
  for (const one of file.getInstructions()) {
    const args = one.getRawArgumentsContent() ?? "";
    switch (one.getKeyword()) {
      case "WORKDIR":
        directory = args;
        mkdirSync(at(directory), { recursive: true });
        break;
      case "COPY": {
        const names = args.startsWith("[") ? (JSON.parse(args) as string[]) : args.split(" ");
        // From another stage.
        if (names[0]?.startsWith("/")) break;
        const last = names.pop() ?? ".";
        const target = resolve(at(directory), last);
        const isIgnored = (path: string) =>
          /[\\/](?:node_modules|\.heddle)(?:[\\/]|$)/.test(path.slice(made.length));
        for (const name of names) {
          const source = resolve(made, name);
          // A target without a trailing slash is the copy itself.
          const to = name === "." || !last.endsWith("/") ? target : join(target, name);
          cpSync(source, to, { recursive: true, filter: (path) => !isIgnored(path) });
        }
        break;
      }
      case "RUN":
        // What is outside the folder is the image's own.
        if (args.startsWith("mkdir /data")) mkdirSync(at("/data"));
        else execFileSync("sh", ["-c", args], { cwd: at(directory), stdio: ["ignore", "ignore", "inherit"] });
        break;
      case "CMD":
        command = JSON.parse(args) as string[];
        break;
    }
  }
  const [node = "", ...args] = command;
  const port = args.indexOf("--port");
  args.splice(port, 2);
  return [node, args.map((arg) => (arg === "/data" ? at(arg) : arg === "0.0.0.0" ? "127.0.0.1" : arg))];
}

/** Runs the graph of `heddle init` to its end. */
async function tryApproval(url: string): Promise<void> {
  const { thread_id } = await post(`${url}/threads`, {});
  const runs = `${url}/threads/${String(thread_id)}/runs/wait`;
  const paused = await post(runs, { assistant_id: "agent", input: { topic: "tea" } });
  if (!("__interrupt__" in paused)) throw new Error(`it did not pause: ${JSON.stringify(paused)}`);
  const ended = await post(runs, { assistant_id: "agent", command: { resume: { ok: true } } });
  if (ended["draft"] !== "Draft 1 about tea") throw new Error(`it did not end: ${JSON.stringify(ended)}`);
}

/** Checks the guide's machine as it is printed there: approved on the dashboard, and expired when three days have passed. */
async function tryMachine(tarball: string): Promise<void> {
  const place = join(home, "machine");
  mkdirSync(join(place, "graphs"), { recursive: true });
  npm(place, "init", "--yes");
  npm(place, "install", tarball, "xstate@5");
  const guide = "src/guide/machines.md";
  writeFileSync(join(place, "graphs/payment.ts"), printed("ts", "// graphs/payment.ts", guide));
  writeFileSync(join(place, "heddle.json"), printed("json", '{ "graphs"', guide));
  await serve("heddle dev with the guide's machine", "npx", ["heddle", "dev"], approveOnDashboard, place);
  cpSync(join(import.meta.dirname, "expire.mjs"), join(place, "expire.mjs"));
  process.stdout.write(execFileSync(process.execPath, ["expire.mjs"], { cwd: place, encoding: "utf8" }));
}

async function approveOnDashboard(url: string): Promise<void> {
  const { thread_id } = await post(`${url}/threads`, {});
  const thread = `/threads/${String(thread_id)}`;
  await post(`${url}${thread}/runs/wait`, { assistant_id: "payment", input: { amount: 5 } });
  if (chromiumPath === undefined) throw new Error("there is no Chromium in /usr/bin");
  const browser = await chromium.launch({ executablePath: chromiumPath, args: ["--no-sandbox"] });
  try {
    const page = await browser.newPage();
    await page.goto(`${url}/#${thread}`);
    await page.getByRole("group", { name: "Event", exact: true }).getByText("APPROVE").click();
    await page.getByRole("group", { name: "Event", exact: true }).waitFor({ state: "detached" });
    const [run] = JSON.parse(await textOf(`${url}${thread}/runs`)) as [{ readonly run_id: string }];
    const ended = await textOf(`${url}${thread}/runs/${run.run_id}/join`);
    if (!ended.includes('"receipt":"5 EUR received"')) throw new Error(`it was not paid: ${ended}`);
  } finally {
    await browser.close();
  }
}

/** Installs another version of Node; returns the path of its program. */
function installNode(version: string): string {
  const nodes = join(home, `node-${version}`);
  mkdirSync(nodes);
  // Otherwise npm would install it into the nearest project above.
  npm(nodes, "init", "--yes");
  npm(nodes, "install", `node@${version}`);
  return join(nodes, "node_modules/node/bin/node");
}

/** Checks that the command on an older version of Node only reports which version it needs. */
function refuseOn(version: string, cli: string): void {
  const { status, stderr } = spawnSync(installNode(version), [cli, "start"], {
    cwd: project,
    encoding: "utf8",
  });
  if (status !== 1 || !/^heddle: needs Node 20\.19 or later; this is Node 18\.[^\n]*\n$/.test(stderr))
    throw new Error(`on Node ${version} it ended with ${status}: ${stderr}`);
  process.stdout.write(`heddle on Node ${version}: ${stderr}`);
}

try {
  const tarball =
    process.argv[2] ?? join(home, npm(root, "pack", "--pack-destination", home).split("\n").at(-1) ?? "");
  mkdirSync(project);
  npm(project, "init", "--yes");
  npm(project, "install", tarball, "zod");
  mkdirSync(dirname(join(project, "graphs/review.ts")));
  writeFileSync(join(project, "graphs/review.ts"), printed("ts", "// graphs/review.ts"));
  writeFileSync(join(project, "heddle.json"), printed("json", '{ "graphs"'));
  await serve(`npx heddle dev on Node ${process.version}`, "npx", ["heddle", "dev"]);
  const cli = join(project, "node_modules/heddle/dist/src/cli.js");
  writeLazyProject();
  await serve(
    "everything that is loaded on demand",
    process.execPath,
    [cli, "start", "--config", "all.json"],
    tryLazyParts,
  );
  await tryMachine(tarball);
  await tryNewProject(cli, tarball);
  refuseOn("18", cli);
  for (const version of ["22", "24"]) {
    const node = installNode(version);
    for (const command of ["dev", "start"]) {
      await serve(`heddle ${command} on Node ${version}`, node, [cli, command]);
    }
  }
} finally {
  rmSync(home, { recursive: true, force: true });
}
