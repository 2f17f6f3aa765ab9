import { spawnSync } from "node:child_process";
import { cpSync, existsSync } from "node:fs";
import { join } from "node:path";

export const ROOT = join(import.meta.dirname, "..");

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
  bundle("build:typebox", join(out, "src", "wire", "typebox.js"));
  bundle("build:xstate", join(out, "actors", "xstate.js"));
  cpSync(join(ROOT, "package.json"), join(out, "package.json"));
  return out;
}

/** Puts a library into the one file that imports it, as the package's own build does. */
function bundle(script: string, file: string): void {
  const run = spawnSync("npm", ["run", script, "--", file, `--outfile=${file}`], {
    cwd: ROOT,
    encoding: "utf8",
  });
  if (run.status !== 0) throw new Error(`cannot bundle ${file}:\n${run.stderr}`);
}
