/**
 * `npm run build` compiles and bundles the package into `dist/`. With `-- --if-changed`, it does nothing if `dist/` was built from the same
 * files. `npm run build -- --pages DIR` only bundles the web pages, into DIR. The exit code is not 0 if anything fails.
 */
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { BuildMark, hashBuildInputs } from "./build-freshness.ts";
import { bundlePages, bundleServer, bundleXState, PACKAGE_ROOT } from "./package-bundles.ts";

const [option, pages] = process.argv.slice(2);
if (option === "--pages" && pages !== undefined) await bundlePages(pages);
else if (option === undefined || option === "--if-changed") {
  const mark = new BuildMark(join(PACKAGE_ROOT, "dist"));
  // The hash is taken before the build, so that a file that changes during the build leads to another build.
  const inputs = hashBuildInputs(PACKAGE_ROOT);
  if (option === undefined || !mark.matches(inputs)) {
    mark.remove();
    await buildPackage();
    mark.write(inputs);
  }
} else throw new TypeError("usage: npm run build [-- --if-changed | --pages DIR]");

async function buildPackage(): Promise<void> {
  const dist = join(PACKAGE_ROOT, "dist");
  for (const folder of ["plain", "src", "actors"])
    rmSync(join(dist, folder), { recursive: true, force: true });

  // Type declarations go to `dist/src` and `dist/actors`, JavaScript to `dist/plain`.
  const tsc = join(PACKAGE_ROOT, "node_modules/typescript/bin/tsc");
  const { status } = spawnSync(process.execPath, [tsc, "-p", join(import.meta.dirname, "tsconfig.json")], {
    stdio: "inherit",
  });
  if (status !== 0) process.exit(1);

  const compiled = join(dist, "plain/src");
  await bundleXState(join(dist, "plain/actors/xstate.js"));
  const entries = [
    "cli.js",
    "index.js",
    "testing.js",
    "app/node-worker-entry.js",
    "app/graph-types-worker-entry.js",
    "demo/agent.js",
    "demo/approval.js",
    "demo/research.js",
    "demo/order.js",
  ];
  await bundleServer(
    entries.map((name) => join(compiled, name)),
    { outbase: compiled, outdir: join(dist, "src") },
  );
  await bundlePages(join(dist, "src/dashboard"));
}
