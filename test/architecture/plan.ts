/**
 * The floor plan. A room (a folder, or one file on the top floor) may import from the rooms named behind it and from
 * itself, nothing else: arrows run downwards only.
 */
export const floors: Readonly<Record<string, readonly string[]>> = {
  "src/model": [],
  "src/ports": ["src/model"],
  "src/codec": ["src/model"],
  "src/graph": ["src/model"],
  "src/engine": ["src/graph", "src/ports", "src/model"],
  "src/langgraph": ["src/graph", "src/ports", "src/model"],
  "src/system": ["src/ports", "src/model"],
  "src/storage": ["src/codec", "src/ports", "src/model"],
  "src/transport": ["src/ports", "src/model"],
  "src/workers": ["src/ports", "src/model"],
  "src/door": ["src/ports", "src/model"],
  "src/stream": ["src/codec", "src/ports", "src/model"],
  actors: ["src/graph", "src/ports", "src/model"],
  "src/service": ["actors", "src/stream", "src/graph", "src/codec", "src/ports", "src/model"],
  "src/wire": ["src/service", "src/ports", "src/model"],
  "src/http": ["src/wire", "src/door", "src/service", "src/stream", "src/codec", "src/ports", "src/model"],
  "src/live": ["src/wire", "src/door", "src/service", "src/stream", "src/codec", "src/ports", "src/model"],
  "src/version.ts": [],
  "src/inspect-config.ts": ["src/model"],
  "src/pages.ts": [],
  "src/relay.ts": ["src/door"],
  "src/inspect.ts": ["src/relay.ts", "src/settings.ts", "src/door", "src/model"],
  "src/dashboard": [],
  "src/config-keys.ts": ["src/model"],
  "src/webhook-config.ts": ["src/model"],
  "src/config.ts": [
    "src/config-keys.ts",
    "src/door",
    "src/webhook-config.ts",
    "src/store-config.ts",
    "src/model",
    "src/inspect-config.ts",
  ],
  "src/store-config.ts": ["src/model"],
  "src/log.ts": ["src/ports"],
  "src/loading": ["src/config.ts", "src/langgraph", "src/graph", "src/ports", "src/model"],
  "src/settings.ts": ["src/door", "src/config.ts", "src/log.ts", "src/model"],
  "src/hosting.ts": [
    "src/langgraph",
    "src/workers",
    "src/engine",
    "src/graph",
    "src/system",
    "src/ports",
    "src/config.ts",
  ],
  // What runs in a worker thread.
  "src/worker.ts": [
    "src/workers",
    "src/engine",
    "src/loading",
    "src/graph",
    "src/system",
    "src/ports",
    "src/model",
    "src/config.ts",
  ],
  "src/app-options.ts": [
    "actors",
    "src/stream",
    "src/storage",
    "src/graph",
    "src/ports",
    "src/model",
    "src/config.ts",
    "src/webhook-config.ts",
    "src/store-config.ts",
    "src/inspect-config.ts",
  ],
  // Of the parts list, what the store is made of.
  "src/app-store.ts": [
    "src/service",
    "src/system",
    "src/config.ts",
    "src/store-config.ts",
    "src/loading",
    "src/ports",
    "src/model",
  ],
  // The parts list: the only one that knows everyone.
  "src/app.ts": [
    "src/app-options.ts",
    "src/app-store.ts",
    "src/http",
    "src/live",
    "src/door",
    "src/service",
    "actors",
    "src/stream",
    "src/engine",
    "src/hosting.ts",
    "src/langgraph",
    "src/storage",
    "src/transport",
    "src/system",
    "src/graph",
    "src/ports",
    "src/model",
    "src/config.ts",
    "src/webhook-config.ts",
    "src/loading",
    "src/log.ts",
    "src/version.ts",
    "src/inspect-config.ts",
    "src/pages.ts",
  ],
  "src/dev.ts": [
    "src/app.ts",
    "src/config.ts",
    "src/loading",
    "src/graph",
    "src/system",
    "src/ports",
    "src/model",
  ],
  "src/process.ts": ["src/app.ts", "src/system", "src/ports"],
  "src/serve.ts": [
    "src/app.ts",
    "src/dev.ts",
    "src/process.ts",
    "src/config.ts",
    "src/door",
    "src/log.ts",
    "src/settings.ts",
    "src/version.ts",
    "src/system",
    "src/ports",
  ],
  "src/care.ts": ["src/storage", "src/log.ts", "src/system", "src/ports", "src/model"],
  "src/cli.ts": [
    "src/inspect.ts",
    "src/serve.ts",
    "src/care.ts",
    "src/settings.ts",
    "src/version.ts",
    "src/model",
  ],
  "src/index.ts": ["src/app.ts", "src/store-config.ts", "src/graph", "src/ports", "src/model"],
  // What a user would write: through the front door alone.
  "src/demo": ["src/index.ts"],
};

/** Code for browsers: no room of the server, and its ports are not there. */
export const BROWSER = "src/dashboard";

/** User code, in which time passes as it likes. */
export const GUEST = "src/demo";

/** Who may touch a package or a part of Node, by the start of the path. Swap the package, touch these files. */
export const keepers: Readonly<Record<string, readonly string[]>> = {
  "uWebSockets.js": ["src/transport/uws"],
  "uWebSockets.js-next": ["src/transport/uws"],
  ws: ["src/relay.ts", "src/transport/node"],
  "node:http": ["src/relay.ts", "src/transport/node", "src/system/http-client.ts"],
  "node:https": ["src/system/http-client.ts"],
  "node:dns/promises": ["src/system/http-client.ts"],
  "node:net": ["src/relay.ts", "src/transport/", "src/door/hosts.ts", "src/system/http-client.ts"],
  "node:stream": ["src/transport/node"],
  level: ["src/storage/"],
  "classic-level": ["src/storage/"],
  "abstract-level": ["src/storage/"],
  "memory-level": ["src/storage/"],
  msgpackr: ["src/codec/msgpack.ts"],
  croner: ["src/service/crons/schedule.ts"],
  typebox: ["src/wire/typebox.ts"],
  "typebox/compile": ["src/wire/typebox.ts"],
  "elkjs/lib/elk-api.js": ["src/dashboard/inspector/draw.ts"],
  preact: ["src/dashboard/"],
  "preact/hooks": ["src/dashboard/"],
  "@preact/signals": ["src/dashboard/"],
  "@tanstack/virtual-core": ["src/dashboard/threads/rows.tsx"],
  diff: ["src/dashboard/parts/diff.tsx"],
  xstate: ["actors/"],
  "tsx/cjs/api": ["src/loading/"],
  "tsx/esm/api": ["src/loading/"],
  // Their types; the packages themselves come from the user's project.
  "@langchain/core/messages": ["src/langgraph/"],
  "@langchain/core/runnables": ["src/langgraph/"],
  "@langchain/langgraph": ["src/langgraph/"],
  "@langchain/langgraph/pregel": ["src/langgraph/"],
  "@langchain/langgraph/zod/schema": ["src/langgraph/"],
  "@langchain/langgraph-checkpoint": ["src/langgraph/"],
  "node:async_hooks": ["src/langgraph/"],
  "node:module": ["src/loading/", "src/langgraph/library.ts", "src/version.ts"],
  "node:crypto": ["src/model/ids.ts", "src/door/", "src/system/", "src/service/webhooks/signature.ts"],
  "ipaddr.js": ["src/service/webhooks/addresses.ts"],
  "node:fs": [
    "src/pages.ts",
    "src/storage/",
    "src/system/boot.ts",
    "src/system/watcher.ts",
    "src/config.ts",
    "src/care.ts",
    "src/loading/",
    "src/langgraph/library.ts",
  ],
  "node:fs/promises": ["src/storage/"],
  "node:path": [
    "src/storage/",
    "src/system/watcher.ts",
    "src/config.ts",
    "src/serve.ts",
    "src/dev.ts",
    "src/loading/",
    "src/langgraph/library.ts",
  ],
  "node:worker_threads": ["src/system/worker-thread.ts"],
  "node:url": ["src/pages.ts", "src/loading/", "src/langgraph/library.ts"],
  "node:util": ["src/config.ts", "src/settings.ts"],
  "node:zlib": ["src/storage/"],
};

/** Where time and randomness come from. */
export const ADAPTERS = "src/system/";

/** What no one else may call, as it stands in code. A method of the same name on a port is not meant. */
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

/** Modules that bring either. */
export const timeModules: readonly string[] = ["node:timers", "node:timers/promises", "node:perf_hooks"];

export const LONGEST = 300;

/** What has to be known by all servers of a process, and why. */
export const processWide: Readonly<Record<string, string>> = {
  "src/storage/lock.ts": "LevelDB's own lock is dropped by a second open in the same process",
  "src/langgraph/show.ts":
    "an object is one object, whoever holds it; what it was shown as goes when it goes",
};
