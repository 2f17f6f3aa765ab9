import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PACKAGE_ROOT } from "../../src/build/package-bundles.ts";

/** The npm packages that a peer needs, with exact versions. */
export interface PeerPackages {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly overrides?: Readonly<Record<string, string>>;
  readonly flags?: readonly string[];
}

const MINUTES = 10;

/**
 * Returns a folder with the peer's packages, which are no dependencies of Heddle. They are installed on first use, and
 * again when their versions change.
 * @throws Error with the last lines of npm's output if the installation fails
 */
export function installPackages(
  name: string,
  { dependencies, overrides = {}, flags = [] }: PeerPackages,
): string {
  const folder = join(PACKAGE_ROOT, "dist", "peers", name);
  const manifest = JSON.stringify({ private: true, type: "module", dependencies, overrides }, undefined, 2);
  // This file is written last, so that an interrupted installation is repeated.
  const mark = join(folder, "installed.json");
  if (existsSync(mark) && readFileSync(mark, "utf8") === manifest) return folder;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), manifest);
  process.stderr.write(`installing ${name} ... `);
  const npm = spawnSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", ...flags], {
    cwd: folder,
    encoding: "utf8",
    timeout: MINUTES * 60_000,
  });
  if (npm.status !== 0) {
    throw new Error(`${name} does not install here: ${npm.stderr.trim().split("\n").slice(-3).join(" ")}`);
  }
  writeFileSync(mark, manifest);
  return folder;
}
