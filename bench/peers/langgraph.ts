import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PACKAGE_ROOT } from "../../src/build/package-bundles.ts";
import { firstAnswer, freePort } from "../ports.ts";
import { installPackages } from "./install.ts";
import { Processes } from "../processes.ts";

const PROJECTS = join(PACKAGE_ROOT, "dist", "peers", "langgraph", "projects");
const NAMES = ["one", "chat", "emit", "tokens", "slow"];

/** Creates a project folder with the graphs of the bench. The official server stores its data there too. */
export function newProject(): string {
  installPackages("langgraph", {
    dependencies: {
      "@langchain/langgraph-api": "2.0.0",
      "@langchain/langgraph-cli": "2.0.0",
      "@langchain/langgraph": "1.4.18",
      "@langchain/core": "1.2.13",
      "@langchain/langgraph-checkpoint": "1.1.5",
    },
    // The packages require three different versions of the SDK; this installs one for all of them.
    overrides: { "@langchain/langgraph-sdk": "2.0.0" },
    flags: ["--legacy-peer-deps"],
  });
  mkdirSync(PROJECTS, { recursive: true });
  const project = mkdtempSync(join(PROJECTS, "p-"));
  copyFileSync(join(PACKAGE_ROOT, "bench", "peers", "langgraph.mjs"), join(project, "graphs.mjs"));
  writeFileSync(
    join(project, "langgraph.json"),
    JSON.stringify({
      node_version: "20",
      dependencies: ["."],
      graphs: Object.fromEntries(NAMES.map((name) => [name, `./graphs.mjs:${name}`])),
      env: {},
    }),
  );
  writeFileSync(join(project, ".gitignore"), ".langgraph_api\n");
  return project;
}

export function removeProjects(): void {
  rmSync(PROJECTS, { recursive: true, force: true });
}

/**
 * Starts the official JavaScript server on a project made by {@link newProject}. Resolves when `/ok` responds with
 * 200.
 */
export async function startLangGraph(project: string): Promise<Processes> {
  const port = await freePort();
  const server = new Processes(port);
  const cli = join(
    project,
    "..",
    "..",
    "node_modules",
    "@langchain",
    "langgraph-cli",
    "dist",
    "cli",
    "cli.mjs",
  );
  server.start({
    program: process.execPath,
    args: [cli, "dev", "--no-browser", "--no-reload", "-n", "256", "-h", "127.0.0.1", "-p", String(port)],
    cwd: project,
    env: {
      LOG_LEVEL: "error",
      LANGSMITH_TRACING: "false",
      LANGCHAIN_TRACING_V2: "false",
      LANGGRAPH_CLI_NO_ANALYTICS: "1",
    },
    stop: "SIGINT",
  });
  try {
    await firstAnswer(port, "/ok", () => server.ended());
  } catch (error) {
    await server.kill();
    throw error;
  }
  return server;
}
