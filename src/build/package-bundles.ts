import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { build, type BuildOptions, type Plugin } from "esbuild";

/** The directory of the package. */
export const PACKAGE_ROOT = join(import.meta.dirname, "../..");

const common: BuildOptions = {
  absWorkingDir: PACKAGE_ROOT,
  bundle: true,
  format: "esm",
  logLevel: "warning",
};

/**
 * Rewrites the compiled `actors/xstate.js` in place: XState in one file, with `Object.assign` instead of object spread. In the V8 of Node
 * 20, an object that is made by spread and then gets further members has a hidden class of its own, which is slow: the three actors of a
 * run take 20 us, and 9 us with `Object.assign` (benchmark `wait-256`). That saves about 10 % of a run's CPU time. Later versions of Node
 * gain nothing, so remove this function when support for Node 20 ends.
 */
export async function bundleXState(file: string): Promise<void> {
  await build({
    ...common,
    entryPoints: [file],
    outfile: file,
    allowOverwrite: true,
    platform: "node",
    target: "node20",
    supported: { "object-rest-spread": false },
    // Esbuild's own helper for spread defines one member after another.
    footer: { js: "__spreadValues = Object.assign;" },
  });
}

/**
 * Packages that are not bundled with the server: they have native code, find their files by their own path, or are loaded by some servers
 * only.
 */
export const EXTERNAL_PACKAGES = [
  "msgpackr",
  "classic-level/binding.js",
  "esbuild",
  "ws",
  "tsx",
  "uWebSockets.js*",
  "croner",
  "ipaddr.js",
  "jose",
  "pg",
  "prom-client",
  "@langchain/langgraph-sdk",
];

/**
 * Modules that import `app.js` in the bundle: their paths in `src`, without the extension. A server loads most of them after the app. The
 * others would gain little by loading less: a graph that a worker thread loads imports the whole package, and the commands take longer than
 * the 60 ms that loading the app takes.
 */
export const MODULES_WITH_APP = [
  "app/node-worker-entry",
  "app/shard-links",
  "cli/dev-server",
  "cli/maintenance",
  "cli/prove-machine-claim",
  "cli/replicated-shard-storage",
  "cli/show-inspector",
  "machines/exported-machine",
  "openapi/document",
  "platform/file-watcher",
  "transport/node",
];

/**
 * Makes some modules import `app.js`. Esbuild puts modules into one chunk if the same entry points and dynamic imports lead to them. Without
 * this plugin, these modules would divide the modules of `app.js` into further chunks: a start would read 70 files instead of 42, and take
 * about 12 % longer (benchmark `cold-start`).
 */
const fewerChunks: Plugin = {
  name: "fewer-chunks",
  setup: ({ onLoad }) =>
    onLoad({ filter: new RegExp(`/src/(${MODULES_WITH_APP.join("|")})\\.js$`) }, ({ path }) => ({
      contents: `${readFileSync(path, "utf8")}\nimport ${JSON.stringify(join(dirname(dirname(path)), "app.js"))};\n`,
    })),
};

/** Bundles the compiled files of the server. Loading 600 separate files would double the time of a start. */
export async function bundleServer(entries: readonly string[], options: BuildOptions): Promise<void> {
  await build({
    ...common,
    entryPoints: [...entries],
    platform: "node",
    target: "node20",
    splitting: true,
    chunkNames: "chunks/[name]-[hash]",
    // `external`: the bundled files do not link to their source maps. tsx turns on Node's source maps, and Node would read the maps of all
    // files in the stack, up to 1.9 MB each, when a node fails for the first time.
    sourcemap: "external",
    external: EXTERNAL_PACKAGES,
    plugins: [fewerChunks],
    alias: { "node-gyp-build": "./src/storage/classic-level-binding.cjs" },
    define: { __dirname: "undefined" },
    // Bundled CommonJS packages call `require`, which an ES module does not have.
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
    },
    ...options,
  });
}

/** Bundles the web pages: dashboard, documentation and inspector. */
export async function bundlePages(outdir: string): Promise<void> {
  const source = (name: string) => ({ in: `src/dashboard/${name}`, out: name.replace(/\.[^.]*$/, "") });
  await build({
    ...common,
    entryPoints: [
      ...["licences.txt", "dashboard.html", "dashboard.css", "dashboard.tsx"].map(source),
      ...["docs.html", "docs.css", "docs.tsx", "inspector.html", "inspector.css", "inspector.ts"].map(source),
      { in: "elkjs/lib/elk-worker.min.js", out: "elk-worker" },
    ],
    outdir,
    minify: true,
    target: "es2022",
    loader: { ".html": "copy", ".txt": "copy", ".md": "text" },
  });
}
