import { execFileSync } from "node:child_process";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");

/** Makes the pages as `npm run build` does: the server finds them where the build puts them. */
export function buildPages(): void {
  const script = ["run", "--silent", "build:pages", "--", "--outdir=dist/src/dashboard"];
  execFileSync("npm", script, { cwd: root, stdio: ["ignore", "ignore", "pipe"] });
}
