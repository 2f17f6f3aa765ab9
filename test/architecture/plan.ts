import { readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");

/**
 * Folders (and single files at the top of `src`) with the folders that each may import from, besides itself. It is read
 * from the table in `src/README.md`, so that map and rule cannot differ.
 */
export const allowedImports: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  readFileSync(join(root, "src/README.md"), "utf8")
    .split("\n")
    .map((line) => /^\| `([^`]+)` \|[^|]*\|([^|]*)\|$/.exec(line))
    .filter((row) => row !== null)
    .map(([, folder = "", imports = ""]) => [
      folder,
      [...imports.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name),
    ]),
);

/** Code for browsers: separate from the server, and without its ports. */
export const BROWSER_CODE = "src/dashboard";

/** The only file that may import Markdown: its bundle contains the text of the guide. */
export const GUIDE_PAGES = "src/dashboard/docs/guide-contents.ts";

/** User code, which may use the real clock. */
export const USER_CODE = "src/demo";

/**
 * Files that may import a package or a Node module, by the beginning of their path: replacing the package means
 * changing these files.
 */
export const packageOwners: Readonly<Record<string, readonly string[]>> = {
  "uWebSockets.js": ["src/transport/uws"],
  "uWebSockets.js-next": ["src/transport/uws"],
  ws: ["src/cli/inspector-relay.ts", "src/transport/node", "src/transport/peer-connections.ts"],
  "node:http": [
    "src/cli/inspector-relay.ts",
    "src/conformance/webhook-receiver.ts",
    "src/transport/node",
    "src/transport/peer-",
    "src/platform/http-client.ts",
  ],
  "node:https": ["src/platform/http-client.ts", "src/transport/peer-"],
  "node:dns/promises": ["src/platform/http-client.ts"],
  "node:net": [
    "src/cli/inspector-relay.ts",
    "src/transport/",
    "src/access/hosts.ts",
    "src/platform/http-client.ts",
  ],
  "node:stream": ["src/transport/node", "src/transport/peer-"],
  level: ["src/storage/"],
  "classic-level": ["src/storage/"],
  "abstract-level": ["src/storage/"],
  "memory-level": ["src/storage/"],
  pg: ["src/postgres/postgres-connections.ts"],
  msgpackr: ["src/codec/value-encoding.ts"],
  jose: ["src/access/jwt-auth.ts"],
  esbuild: [
    "src/build/",
    "src/config/json-error.ts",
    "src/config/component-bundler.ts",
    "src/graph-loader/describe-load-error.ts",
  ],
  "prom-client": ["src/metrics/exposition.ts"],
  dotenv: ["src/config/config.ts"],
  croner: ["src/service/crons/cron-schedule.ts"],
  typebox: ["src/schemas/typebox.ts"],
  "typebox/compile": ["src/schemas/typebox.ts"],
  "typebox/schema": ["src/dashboard/components/form-schema.ts", "src/machines/json-schema-validator.ts"],
  "elkjs/lib/elk-api.js": ["src/dashboard/inspector/chart-drawing.ts"],
  preact: ["src/dashboard/"],
  "preact/hooks": ["src/dashboard/"],
  "@preact/signals": ["src/dashboard/"],
  "@tanstack/virtual-core": [
    "src/dashboard/components/use-virtualizer.ts",
    "src/dashboard/threads/conversation-view.tsx",
  ],
  diff: ["src/dashboard/components/json-diff.tsx"],
  marked: ["src/dashboard/components/markdown.tsx"],
  xstate: ["actors/"],
  "tsx/cjs/api": ["src/graph-loader/"],
  "tsx/esm/api": ["src/graph-loader/"],
  // Types only; the packages themselves come from the user's project.
  "@langchain/core/messages": ["src/langgraph/"],
  "@langchain/core/runnables": ["src/langgraph/"],
  "@langchain/core/tracers/log_stream": ["src/langgraph/"],
  "@langchain/langgraph": ["src/langgraph/"],
  "@langchain/langgraph/pregel": ["src/langgraph/"],
  "@langchain/langgraph/zod/schema": ["src/langgraph/"],
  "@langchain/langgraph-checkpoint": ["src/langgraph/"],
  // Types only; the compiler itself comes from the user's project.
  "typescript-5": ["src/graph-types/"],
  "@langchain/langgraph-sdk": ["src/conformance/"],
  "node:assert/strict": ["src/contracts/"],
  "node:async_hooks": ["src/langgraph/"],
  "node:module": [
    "src/config/json-error.ts",
    "src/graph-loader/",
    "src/graph-types/project-program.ts",
    "src/langgraph/user-library.ts",
    "src/machines/exported-machine.ts",
    "src/platform/version.ts",
  ],
  "node:crypto": [
    "src/build/",
    "src/model/ids.ts",
    "src/access/",
    "src/graph-types/project-program.ts",
    "src/platform/",
    "src/service/webhooks/signature.ts",
  ],
  "ipaddr.js": ["src/service/webhooks/address-check.ts"],
  "node:child_process": ["src/build/", "src/cli/shard-processes.ts"],
  "node:fs": [
    "src/build/",
    "src/app/dashboard-files.ts",
    "src/config/component-bundler.ts",
    "src/storage/",
    "src/platform/boot-id.ts",
    "src/platform/file-descriptor-limit.ts",
    "src/platform/file-watcher.ts",
    "src/config/config.ts",
    "src/cli/maintenance.ts",
    "src/cli/address-file.ts",
    "src/cli/shard-directories.ts",
    "src/cli/shard-processes.ts",
    "src/transport/peer-server.ts",
    "src/cli/init.ts",
    "src/cli/prove-machine-claim.ts",
    "src/cli/container-files.ts",
    "src/graph-loader/",
    "src/graph-types/project-program.ts",
    "src/langgraph/user-library.ts",
  ],
  "node:fs/promises": ["src/storage/", "src/graph-types/types-reader.ts"],
  "node:path": [
    "src/build/",
    "src/storage/",
    "src/platform/file-watcher.ts",
    "src/config/component-bundler.ts",
    "src/config/config.ts",
    "src/cli/serve.ts",
    "src/cli/maintenance.ts",
    "src/cli/address-file.ts",
    "src/cli/shard-directories.ts",
    "src/cli/shard-processes.ts",
    "src/cli/dev-server.ts",
    "src/cli/init.ts",
    "src/cli/container-files.ts",
    "src/graph-loader/",
    "src/graph-types/project-program.ts",
    "src/langgraph/user-library.ts",
  ],
  "node:worker_threads": ["src/platform/worker-thread.ts"],
  "node:os": [
    "src/cli/process-lifecycle.ts",
    "src/cli/shard-processes.ts",
    "src/cli/cluster-node.ts",
    "src/platform/",
  ],
  "node:v8": ["src/platform/heap-usage.ts"],
  "node:url": ["src/app/dashboard-files.ts", "src/graph-loader/", "src/langgraph/user-library.ts"],
  "node:util": ["src/config/config.ts", "src/cli/command-line.ts", "src/platform/terminal.ts"],
  "node:zlib": ["src/replication/shard-snapshot-parts.ts", "src/storage/"],
};

/** The folder of the adapters that provide time and randomness. */
export const ADAPTERS = "src/platform/";

/** Calls that no other file may make, as they appear in code. Methods of the same name on a port are allowed. */
export const timeAndRandomness: readonly RegExp[] = [
  /\bDate\s*\.\s*now\b/,
  /\bnew\s+Date\s*(\(\s*\)|(?!\s*\())/,
  /(?<![.\w]|new\s+)Date\s*\(/,
  /\bMath\s*\.\s*random\b/,
  /\bcrypto\s*\.\s*(random|getRandom)/,
  /(?<![.\w])(randomUUID|randomBytes|randomInt|randomFill|randomFillSync|getRandomValues)\b/,
  /(?<![.\w])(setTimeout|setInterval|setImmediate|queueMicrotask)\b(?!\s*[:?])/,
  /\bprocess\s*\.\s*(nextTick|hrtime|uptime)\b/,
  /(?<![.\w])performance\b(?!\s*:)/,
  /\bAbortSignal\s*\.\s*timeout\b/,
  /\bAtomics\s*\.\s*wait/,
  /\bglobalThis\b/,
];

/** Modules that provide time or randomness. */
export const timeModules: readonly string[] = ["node:timers", "node:timers/promises", "node:perf_hooks"];

/** Names that all servers of a process must share, and why. */
export const processWide: Readonly<Record<string, string>> = {
  "src/storage/directory-lock.ts": "LevelDB's own lock is dropped by a second open in the same process",
  "src/graph-loader/module-loader.ts": "tsx can only be registered for a whole thread",
  "src/langgraph/serialisation.ts":
    "an object is one object, whoever holds it; what it was shown as goes when it goes",
};
