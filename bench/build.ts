import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const ROOT = join(import.meta.dirname, "..");

/** Where the server lies as the package has it, in few files; everything else is compiled file by file. */
export const SERVED = "served";

/**
 * Compiles the whole tree to plain JavaScript and answers where it is. A server run through a loader would be measured
 * with the loader's helpers in its hot functions, and a cold start with its compilations.
 */
export function build(): string {
  const out = join(ROOT, "dist", "bench-build");
  const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
  const run = spawnSync(process.execPath, [tsc, "-p", join(ROOT, "tsconfig.json"), "--outDir", out], {
    encoding: "utf8",
  });
  if (run.status !== 0) {
    if (!existsSync(join(out, "bench", "load.js"))) throw new Error(`cannot compile:\n${run.stdout}`);
    // Emitted all the same: another room's type error is no reason not to measure.
    process.stderr.write(`compiled with type errors:\n${run.stdout}\n`);
  }
  const xstate = join(out, "actors", "xstate.js");
  bundle("build:xstate", [xstate, `--outfile=${xstate}`]);
  const wire = join(out, "src", "wire");
  // Its 700 files would be most of each server's start.
  bundle("build:server", [join(wire, "typebox.js"), `--outdir=${wire}`, "--allow-overwrite", "--banner:js="]);
  const served = join(out, SERVED);
  rmSync(served, { recursive: true, force: true });
  const doors = ["cli", "index", "worker"].map((name) => join(out, "src", `${name}.js`));
  bundle("build:server", [...doors, `--outdir=${served}`]);
  const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
    readonly exports: { ".": object };
  };
  manifest.exports["."] = { default: `./${SERVED}/index.js` };
  writeFileSync(join(out, "package.json"), JSON.stringify(manifest));
  // The graph of the cold start, which finds the package by its name as a user's does.
  copyFileSync(join(ROOT, "bench", "cold.mjs"), join(out, "cold.mjs"));
  writeFileSync(join(out, "cold.json"), JSON.stringify({ graphs: { cold: "./cold.mjs:cold" } }));
  return out;
}

/** Bundles as the package's own build does. */
function bundle(script: string, args: readonly string[]): void {
  const run = spawnSync("npm", ["run", script, "--", ...args], { cwd: ROOT, encoding: "utf8" });
  if (run.status !== 0) throw new Error(`${script} failed:\n${run.stderr}`);
}
