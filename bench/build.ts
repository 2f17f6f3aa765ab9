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
  const typebox = join(out, "src", "wire", "typebox.js");
  const bundled = spawnSync("npm", ["run", "build:typebox", "--", typebox, `--outfile=${typebox}`], {
    cwd: ROOT,
    encoding: "utf8",
  });
  if (bundled.status !== 0) throw new Error(`cannot bundle:\n${bundled.stderr}`);
  cpSync(join(ROOT, "package.json"), join(out, "package.json"));
  return out;
}
