import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { PACKAGE_FOLDER } from "../graph-loader/own-package-paths.ts";
import { makeDirectory } from "../storage/make-directory.ts";
import { ServiceError } from "../model/errors.ts";
import { VERSION } from "../platform/version.ts";

/**
 * Makes a project in a directory: one graph, a test, `heddle.json`, and what npm and TypeScript need. Asks nothing, and overwrites nothing.
 * @returns the paths of the files, each of which begins with `directory` as it was given
 * @throws ServiceError `config.invalid` if one of the files exists, `storage.unavailable` if the directory cannot be made; no file is
 * written then
 */
export function initProject(directory: string): readonly string[] {
  const root = resolve(directory);
  const source = installedFrom(PACKAGE_FOLDER);
  const dependency =
    source === undefined ? `^${VERSION}` : `file:${relative(root, source).replaceAll("\\", "/")}`;
  const files = projectFiles(packageName(basename(root)), dependency);
  const existing = Object.keys(files).filter((path) => existsSync(join(root, path)));
  if (existing.length > 0) {
    throw new ServiceError(
      "config.invalid",
      `${root} has ${existing.join(", ")} already; name another directory: heddle init DIR`,
    );
  }
  makeDirectory(root);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    // `wx`: fails instead of overwriting a file that was created meanwhile.
    writeFileSync(join(root, path), text, { flag: "wx" });
  }
  return Object.keys(files).map((path) => join(directory, path));
}

/**
 * The file or directory from which this package was installed; undefined if it came from a registry, or if this is not known.
 * @param own the directory of the package
 */
export function installedFrom(own: string): string | undefined {
  const modules = dirname(own);
  // If the package is not in a `node_modules` directory, it is a linked clone of the repository.
  if (basename(modules) !== "node_modules") return resolve(own);
  try {
    // npm records in this file where each installed package came from.
    const lock = readFileSync(join(modules, ".package-lock.json"), "utf8");
    const { packages } = JSON.parse(lock) as { readonly packages: { [path: string]: { resolved?: string } } };
    const [, file] = /^file:(.+)/.exec(packages[`node_modules/${basename(own)}`]?.resolved ?? "") ?? [];
    return file === undefined ? undefined : resolve(dirname(modules), file);
  } catch {
    // Other package managers than npm do not write this file.
    return undefined;
  }
}

/** A package name that npm accepts, made from the directory's name. */
function packageName(directory: string): string {
  const name = directory.toLowerCase().replaceAll(/[^a-z0-9.~-]+/g, "-");
  return name.replaceAll(/^[.~-]+|[.~-]+$/g, "") || "graphs";
}

function projectFiles(name: string, dependency: string): { readonly [path: string]: string } {
  return {
    "package.json": `${JSON.stringify(packageJson(name, dependency), null, 2)}\n`,
    "heddle.json": `${JSON.stringify({ graphs: { agent: "./graphs/agent.ts" } }, null, 2)}\n`,
    "tsconfig.json": `${JSON.stringify(TSCONFIG, null, 2)}\n`,
    "graphs/agent.ts": GRAPH,
    "test/agent.test.ts": TEST,
    ".gitignore": "node_modules/\n.heddle/\n.env\n",
    "README.md": readme(name),
  };
}

const packageJson = (name: string, dependency: string) => ({
  name,
  version: "0.1.0",
  private: true,
  type: "module",
  scripts: {
    // Without `exec`, npm does not pass on the signal that stops the server.
    dev: "exec heddle dev",
    start: "exec heddle start",
    test: "node --import tsx --test test/*.test.ts",
    types: "tsc",
  },
  dependencies: { heddle: dependency, zod: "^4.0.0" },
  devDependencies: { "@types/node": "^20.0.0", tsx: "^4.20.0", typescript: "^5.9.0" },
});

const TSCONFIG = {
  compilerOptions: {
    target: "es2023",
    module: "nodenext",
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    types: ["node"],
  },
  include: ["graphs", "test"],
};

const GRAPH = `import { END, graph, list, to } from "heddle";
import { z } from "zod";

/** Writes a draft, asks a person about it, and writes another one until it is approved. */
export default graph({
  state: { topic: z.string(), draft: z.string().optional(), log: list<string>() },
  nodes: {
    // A model would be called here.
    write: async ({ topic, log }) => ({ draft: \`Draft \${log.length + 1} about \${topic}\`, log: ["written"] }),
    review: async ({ draft }, ctx) => {
      const { ok } = await ctx.interrupt({ draft }, { schema: z.object({ ok: z.boolean() }) });
      return ok ? to(END) : to("write");
    },
  },
  edges: { start: "write", write: "review" },
});
`;

const TEST = `import assert from "node:assert/strict";
import { test } from "node:test";
import { createApp } from "heddle";
import agent from "../graphs/agent.ts";

test("a draft is written again until it is approved", async () => {
  // Without a data directory everything stays in memory.
  const app = await createApp({ graphs: { agent } });
  try {
    const thread = await post(\`\${app.url}/threads\`, {});
    const run = (body: object) =>
      post(\`\${app.url}/threads/\${thread.thread_id}/runs/wait\`, { assistant_id: "agent", ...body });
    const asked = await run({ input: { topic: "tea" } });
    assert.deepEqual(asked.__interrupt__[0].value, { draft: "Draft 1 about tea" });
    await run({ command: { resume: { ok: false } } });
    const ended = await run({ command: { resume: { ok: true } } });
    assert.equal(ended.draft, "Draft 2 about tea");
  } finally {
    await app.close();
  }
});

async function post(url: string, body: object) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  assert.equal(response.status, 200, await response.clone().text());
  return response.json();
}
`;

const readme = (name: string): string => `# ${name}

    npm install
    npm run dev     # serves graphs/agent.ts, and loads it again when it changes
    npm test
    npm start       # for production
`;
