/**
 * What a newcomer does: the package as it would be published, in an empty project, with the README's first graph as it is
 * printed there. On this Node, and on others that npm has.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { scheduler } from "node:timers/promises";

const root = join(import.meta.dirname, "..", "..");
const home = mkdtempSync(join(tmpdir(), "heddle-packed-"));
const project = join(home, "project");

function npm(cwd: string, ...args: readonly string[]): string {
  return execFileSync("npm", [...args, "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd,
    encoding: "utf8",
    env: { ...process.env, npm_config_ignore_scripts: "" },
  }).trim();
}

/** A block of the README, by how it begins. */
function printed(language: string, start: string): string {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const blocks = [...readme.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)];
  const found = blocks.find(([, kind, text = ""]) => kind === language && text.startsWith(start))?.[2];
  if (found === undefined) throw new Error(`README.md prints no ${language} that starts with ${start}`);
  return found;
}

async function post(url: string, body: object): Promise<Record<string, unknown>> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  return (await response.json()) as Record<string, unknown>;
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

async function serve(title: string, command: string, args: readonly string[]): Promise<void> {
  const child: ChildProcess = spawn(command, [...args, "--port", "0"], { cwd: project, detached: true });
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
    await tryOut(url);
    process.stdout.write(`${title}: ${/"transport":"(\w+)"/.exec(said.text)?.[1]}, the first graph runs\n`);
  } finally {
    // npx stands between: the whole group is meant.
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, "SIGTERM");
    await ended;
  }
}

try {
  const tarball = npm(root, "pack", "--pack-destination", home).split("\n").at(-1) ?? "";
  mkdirSync(project);
  npm(project, "init", "--yes");
  npm(project, "install", join(home, tarball), "zod");
  mkdirSync(dirname(join(project, "graphs/review.ts")));
  writeFileSync(join(project, "graphs/review.ts"), printed("ts", "// graphs/review.ts"));
  writeFileSync(join(project, "heddle.json"), printed("json", '{ "graphs"'));
  await serve(`npx heddle dev on Node ${process.version}`, "npx", ["heddle", "dev"]);
  const cli = join(project, "node_modules/heddle/dist/src/cli.js");
  for (const version of ["22", "24"]) {
    const nodes = join(home, `node-${version}`);
    mkdirSync(nodes);
    // Else npm would put it into whatever project there is further up.
    npm(nodes, "init", "--yes");
    npm(nodes, "install", `node@${version}`);
    const node = join(nodes, "node_modules/node/bin/node");
    for (const command of ["dev", "start"]) {
      await serve(`heddle ${command} on Node ${version}`, node, [cli, command]);
    }
  }
} finally {
  rmSync(home, { recursive: true, force: true });
}
