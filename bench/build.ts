import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bundleServer, bundleXState, PACKAGE_ROOT } from "../src/build/package-bundles.ts";

/**
 * The folder, inside the build's folder, of the server as the npm package contains it: bundled into a few files. The
 * rest of the build is compiled file by file.
 */
export const SERVED = "served";

/**
 * Compiles the whole repository to plain JavaScript and returns the output folder. If servers ran from TypeScript
 * through a loader instead, the loader's helpers would slow down hot functions, and a cold start would include
 * compilation.
 */
export async function build(): Promise<string> {
  const out = join(PACKAGE_ROOT, "dist", "bench-build");
  const tsc = join(PACKAGE_ROOT, "node_modules", "typescript", "bin", "tsc");
  const run = spawnSync(process.execPath, [tsc, "-p", join(PACKAGE_ROOT, "tsconfig.json"), "--outDir", out], {
    encoding: "utf8",
  });
  if (run.status !== 0) {
    if (!existsSync(join(out, "bench", "load.js"))) throw new Error(`cannot compile:\n${run.stdout}`);
    // tsc has emitted the files anyway: a type error in another folder does not affect the measurement.
    process.stderr.write(`compiled with type errors:\n${run.stdout}\n`);
  }
  await bundleXState(join(out, "actors", "xstate.js"));
  const schemas = join(out, "src", "schemas");
  // TypeBox is bundled, because loading its 700 files would take most of the time that each server needs to start.
  await bundleServer([join(schemas, "typebox.js")], { outdir: schemas, allowOverwrite: true, banner: {} });
  const served = join(out, SERVED);
  rmSync(served, { recursive: true, force: true });
  const entries = ["cli", "index", "app/node-worker-entry"].map((name) => join(out, "src", `${name}.js`));
  await bundleServer(entries, { outdir: served });
  const manifest = JSON.parse(readFileSync(join(PACKAGE_ROOT, "package.json"), "utf8")) as {
    readonly exports: { ".": object };
  };
  manifest.exports["."] = { default: `./${SERVED}/index.js` };
  writeFileSync(join(out, "package.json"), JSON.stringify(manifest));
  // Graphs for servers that the command line starts: they import `heddle` by its package name, as a user's graph does.
  for (const graph of ["cold", "one"]) {
    copyFileSync(join(PACKAGE_ROOT, "bench", `${graph}.mjs`), join(out, `${graph}.mjs`));
    const config = { graphs: { [graph]: `./${graph}.mjs:${graph}` } };
    writeFileSync(join(out, `${graph}.json`), JSON.stringify(config));
  }
  return out;
}
