import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { build } from "./process.ts";

const root = join(import.meta.dirname, "../..");
const cli = join(root, "dist/src/cli.js");
const scripts = join(root, "src/build/check-node.js");

beforeAll(build, 180_000);

/** Runs a file under this Node, which reports another version. */
function runOn(version: string, file: string, ...args: readonly string[]) {
  const pretend = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } });`;
  const preload = `data:text/javascript,${encodeURIComponent(pretend)}`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ["--import", preload, file, ...args], {
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

test.each([
  ["16.20.2", "20.19 or later"],
  ["18.20.8", "20.19 or later"],
  ["20.18.3", "20.19 or later"],
  ["21.6.2", "20.19, 21.7, or 22 and later"],
])("on Node %s one line says that %s is needed", (version, needed) => {
  const refused = {
    status: 1,
    stdout: "",
    stderr: `heddle: needs Node ${needed}; this is Node ${version} (${process.execPath})\n`,
  };
  expect(runOn(version, cli, "--version")).toEqual(refused);
  expect(runOn(version, scripts)).toEqual(refused);
});

test.each(["20.19.0", "21.7.0", "22.0.0", "24.1.0"])("Node %s is let through", (version) => {
  expect(runOn(version, cli, "--version")).toMatchObject({ status: 0, stderr: "" });
  expect(runOn(version, scripts)).toEqual({ status: 0, stdout: "", stderr: "" });
});

test("the entry imports nothing that an older Node would have to link before the check", () => {
  const imported = [
    ...readFileSync(cli, "utf8").matchAll(/^\s*(?:import|export)\b[^(]*?["']([^"']+)["'];?/gm),
  ];
  // The imports of the banner that the build puts at the top of every file.
  expect(imported.map(([, name]) => name)).toEqual(["node:module"]);
});

test("npm start and npm test check it before another tool runs", () => {
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    readonly scripts: { readonly [name: string]: string };
    readonly engines: object;
  };
  expect(manifest.scripts["prestart"]).toMatch(/^node src\/build\/check-node\.js && /);
  expect(manifest.scripts["pretest"]).toBe("node src/build/check-node.js");
  expect(manifest.scripts["pretest:processes"]).toBe("node src/build/check-node.js");
  expect(manifest.scripts["pretest:browser"]).toBe("node src/build/check-node.js");
  expect(manifest.engines).toEqual({ node: ">=20.19" });
});
