import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { compile, type Program } from "../fixtures/compile.ts";

let programs: Readonly<Record<"run" | "soak", Program>>;

beforeAll(async () => {
  const compiled = (name: string) => compile(join(import.meta.dirname, "../../bench", `${name}.ts`));
  programs = { run: await compiled("run"), soak: await compiled("soak") };
  return () => {
    for (const { remove } of Object.values(programs)) remove();
  };
});

const ran = (file: "run" | "soak", ...args: string[]) =>
  spawnSync(process.execPath, [programs[file].script, ...args], { encoding: "utf8" });

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
