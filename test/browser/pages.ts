import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { newest, timeOf } from "../config/process.ts";

const root = join(import.meta.dirname, "../..");
/** The folder of the built pages, where the server looks for them. */
const place = join(root, "dist/src/dashboard");

/**
 * Builds the pages as `npm run build` does, before the tests in a browser, unless those that exist are newer than their
 * source.
 */
export default function buildPages(): void {
  const isBuilt =
    timeOf(join(place, "dashboard.js")) > Math.max(newest(["src"]), timeOf(join(root, "README.md")));
  if (isBuilt) return;
  mkdirSync(place, { recursive: true });
  const made = mkdtempSync(join(root, "dist/pages-"));
  const script = ["run", "--silent", "build", "--", "--pages", made];
  execFileSync("npm", script, { cwd: root, stdio: ["ignore", "ignore", "pipe"] });
  // Renamed in one step, because another server may serve the pages meanwhile and must not read half a script.
  for (const name of readdirSync(made)) renameSync(join(made, name), join(place, name));
  rmSync(made, { recursive: true });
}
