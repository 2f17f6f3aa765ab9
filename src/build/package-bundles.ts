import { join } from "node:path";
import { build, type BuildOptions } from "esbuild";

/** The directory of the package. */
export const PACKAGE_ROOT = join(import.meta.dirname, "../..");

const common: BuildOptions = {
  absWorkingDir: PACKAGE_ROOT,
  bundle: true,
  format: "esm",
  logLevel: "warning",
};

/**
 * Rewrites the compiled `actors/xstate.js` in place: XState in one file, with `Object.assign` instead of object spread. In V8 before
 * version 12, which is in Node 20, an object that is made by spread and then gets further members has a hidden class of its own. Making the
 * options of an actor then takes 4 us or more, which is about 10 % of a run's CPU time (benchmark `wait-256`: 20 us for a run's three
 * actors, 9 us with `Object.assign`). Node 22 and 24 gain nothing, so this function can be removed when support for Node 20 ends. Esbuild's
 * helper for spread is replaced too, because it defines one member after another.
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
    // The bundled files do not link to their source maps. tsx turns on Node's source maps; when a node fails for the first time, Node would
    // read the maps of all files in the stack, up to 1.9 MB each. Stacks of a project's own files still use maps. A debugger can be given
    // the maps by hand.
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
