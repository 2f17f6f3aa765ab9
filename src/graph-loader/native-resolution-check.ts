import { existsSync, readFileSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

interface Manifest {
  readonly name?: string;
  readonly exports?: { readonly "."?: { readonly default?: string } };
}

/**
 * True if Node itself resolves `heddle` from a file to `entry`, the main module of the running package. Node first looks at
 * the package that the file belongs to, then into `node_modules` of each folder above. Returns false if that cannot be
 * determined.
 */
export function resolvesToHeddle(file: string, entry: string): boolean {
  try {
    const manifest = createRequire(import.meta.url).resolve("heddle/package.json");
    const { exports } = JSON.parse(readFileSync(manifest, "utf8")) as Manifest;
    const ours = dirname(manifest);
    // If Heddle runs from its sources, `entry` is a source file, but the name `heddle` resolves to the built module.
    return join(ours, exports?.["."]?.default ?? "") === entry && isResolvedFrom(ours, realpathSync(file));
  } catch {
    return false;
  }
}

function isResolvedFrom(ours: string, file: string): boolean {
  let within = false;
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    if (!within && existsSync(join(folder, "package.json"))) {
      if (folder === ours) return true;
      within = true;
    }
    const installed = join(folder, "node_modules", "heddle");
    if (existsSync(installed)) return realpathSync(installed) === ours;
    if (dirname(folder) === folder) return false;
  }
}
