import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { beforeAll, expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
let programs: string;

// Compiled once: a loader would compile the whole tree anew for each line.
beforeAll(async () => {
  mkdirSync(join(root, "dist"), { recursive: true });
  programs = mkdtempSync(join(root, "dist/options-"));
  await build({
    entryPoints: ["run", "soak"].map((file) => join(root, "bench", `${file}.ts`)),
    outdir: programs,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    packages: "external",
    format: "esm",
    platform: "node",
    logLevel: "warning",
  });
  return () => rmSync(programs, { recursive: true });
});

const ran = (file: string, ...args: string[]) =>
  spawnSync(process.execPath, [join(programs, `${file}.mjs`), ...args], { encoding: "utf8" });

test.each([
  ["run", ["--row", "nothing"], /^no row "nothing"; there are: fdatasync, .*, controls\n$/],
  ["run", ["--rounds", "x"], /^--rounds "x" is not a whole number from 1 on\n$/],
  ["run", ["--rounds", "1.5"], /^--rounds "1.5" is not a whole number from 1 on\n$/],
  ["run", ["--scale", "0"], /^--scale "0" is not a number from 0.001 on\n$/],
  ["run", ["--quiet", ""], /^--quiet "" is not a number from 0 on\n$/],
  ["run", ["--out", "/no/such/folder/figures"], /^--out ".*": there is no folder \/no\/such\/folder\n$/],
  ["run", ["--nothing"], /^Unknown option '--nothing'.*\n$/],
  ["soak", ["--runs", "many"], /^--runs "many" is not a whole number from 100 on\n$/],
] as const)("%s %j is refused in one line, before anything is measured", (file, args, line) => {
  const { status, stdout, stderr } = ran(file, ...args);
  expect([status, stdout]).toEqual([2, ""]);
  expect(stderr).toMatch(line);
});
