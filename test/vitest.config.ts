// `npm test -- FILES` passes this file to Vitest. Plain `npx vitest` does not find it: tests then have 5 s each instead of 60.
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { defineConfig, type Plugin } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** They count the memory, or the calls, of their process: there nobody else may be. */
const MEASURED = [
  "test/actors/idle-threads.test.ts",
  "test/actors/wide.test.ts",
  "test/e2e/stalled-socket.test.ts",
  "test/model/releasing-map.test.ts",
];

/**
 * What has a process of its own, from the first on: a process that others share ends when such a file is next, and another has to
 * load everything again. Then what takes longest: whatever came last would keep all others waiting.
 */
const FIRST = [
  ...MEASURED.map((file) => file.replace(/^test\//, "")),
  "chaos/short",
  "siege/",
  "transport/slow",
  "simulation/simulation",
  "browser/",
  "stream/replay",
  "langgraph/kill",
  "storage/contracts",
  "config/",
  "e2e/webhooks",
];

class InOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = FIRST.findIndex((part) => moduleId.includes(`/test/${part}`));
      return at < 0 ? FIRST.length : at;
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

const shared = {
  // Long enough for a machine that is busy with something else: only what hangs is to be cut off.
  testTimeout: 60_000,
  hookTimeout: 60_000,
  expect: { poll: { timeout: 30_000 } },
};

/**
 * Versions of LangGraph.js, from `langgraph-versions`, over which to run tests of hosting instead of over the one that is
 * developed against: `HEDDLE_TEST_LANGGRAPH="1.0 1.3"`.
 */
const versions = process.env["HEDDLE_TEST_LANGGRAPH"]?.split(" ") ?? [];

/** Makes the tests, and what they import, get LangGraph.js from another directory. */
const langGraphFrom = (directory: string): Plugin => ({
  name: "langgraph-from",
  enforce: "pre",
  resolveId(source) {
    if (!/^@langchain\/(core|langgraph|langgraph-checkpoint)(\/|$)/.test(source)) return null;
    return this.resolve(source, join(directory, "package.json"), { skipSelf: true });
  },
});

function projectOf(version: string) {
  const directory = join(import.meta.dirname, "langgraph-versions", version);
  return {
    plugins: [langGraphFrom(directory)],
    test: {
      ...shared,
      name: `LangGraph ${version}`,
      include: ["test/**/*.test.ts"],
      exclude: ["**/node_modules/**"],
      isolate: false,
      env: { HEDDLE_TEST_LANGGRAPH_AT: directory },
    },
  };
}

export default defineConfig({
  test: {
    // Many wait for processes that they have started.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: InOrder },
    // A run that follows another one has nothing to compile. The cache does not tell where imports led to.
    experimental: { fsModuleCache: versions.length === 0 },
    projects:
      versions.length > 0
        ? versions.map(projectOf)
        : [
            {
              test: {
                ...shared,
                name: "together",
                include: ["test/**/*.test.ts"],
                exclude: [...MEASURED, "**/node_modules/**"],
                isolate: false,
              },
            },
            { test: { ...shared, name: "measured", include: MEASURED, isolate: true } },
          ],
  },
});
