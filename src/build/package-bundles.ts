import { join } from "node:path";
import { build, type BuildOptions } from "esbuild";

/** The folder of the package. */
export const PACKAGE_ROOT = join(import.meta.dirname, "../..");

const common: BuildOptions = {
  absWorkingDir: PACKAGE_ROOT,
  bundle: true,
  format: "esm",
  logLevel: "warning",
};

/**
 * Rewrites the compiled `actors/xstate.js` in place: XState in one file, with `Object.assign` instead of object spread. In V8 before
 * version 12, which is in Node 20, an object that is made by spread and then gets new members has a hidden class of its own. The options of
 * each actor then take 4 us or more to make, which is about 10 % of a run's CPU time (`wait-256`: 20 us for its three actors, 9 us with
 * `Object.assign`). On Node 22 and 24 it gains nothing, so this function can go when support for Node 20 ends. Esbuild's own helper for
 * spread is replaced too, because it defines one member after another.
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
    footer: { js: "__spreadValues = Object.assign;" },
  });
}

/**
 * Packages that are not bundled with the server: those with native code, those that find their files by their own path, and those that only
 * some servers load.
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

/** Bundles the compiled files of the server. Loading 600 separate files would double the time of a start. */
export async function bundleServer(entries: readonly string[], options: BuildOptions): Promise<void> {
  await build({
    ...common,
    entryPoints: [...entries],
    platform: "node",
    target: "node20",
    splitting: true,
    chunkNames: "chunks/[name]-[hash]",
    // The files do not name their maps, because tsx turns on Node's source maps: Node would then read the maps of all files in
    // the stack of the first node that fails, up to 1.9 MB each. Stacks of a project's own files keep their maps. A debugger can be
    // given these maps by hand.
    sourcemap: "external",
    external: EXTERNAL_PACKAGES,
    alias: { "node-gyp-build": "./src/storage/binding.cjs" },
    define: { __dirname: "undefined" },
    // Bundled CommonJS packages call `require`, which an ES module does not have.
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
    },
    ...options,
  });
}

/** Bundles the dashboard, the documentation and the inspector's page. */
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
