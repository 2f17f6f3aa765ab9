// `npm test -- FILES` passes this file to Vitest. Plain `npx vitest` does not find it: tests then have 5 s each instead of 60.
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { defineConfig, type Plugin } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Tests that count the memory or the calls of their process, which no other test may share. */
const MEASURED = [
  "test/actors/idle-threads.test.ts",
  "test/actors/wide.test.ts",
  "test/e2e/stalled-socket.test.ts",
  "test/model/releasing-map.test.ts",
];

const BROWSER = "test/browser/*.test.ts";

/**
 * Tests that start the command line, several servers, PostgreSQL or a TypeScript compiler as processes of their own: almost half of the CPU
 * time of all tests but the browser's.
 */
const PROCESSES = [
  "test/chaos/cluster/short.test.ts",
  "test/config/{care,cli,dev,load-errors,loading,node-version,project-modules,sdk-logger,stacks,terminal,workers}.test.ts",
  "test/e2e/{cluster-nodes,cluster-snapshots,shard-processes}.test.ts",
  "test/graph-types/*.test.ts",
  "test/langgraph/{kill,starter}.test.ts",
  "test/postgres/*.test.ts",
];

/**
 * Files that run first, in processes of their own: a shared process ends when such a file is next, and another one has
 * to load everything again. Then those that take longest: if they came last, all others would wait for them.
 */
const FIRST = [
  ...MEASURED.map((file) => file.replace(/^test\//, "")),
  "chaos/short",
  "siege/",
  "transport/slow",
  "simulation/simulation",
  "simulation/cluster/",
  "damage/",
  "e2e/cluster-nodes",
  "e2e/shard-processes",
  "graph-types/",
  "browser/",
  "stream/replay",
  "stream/large-output",
  "langgraph/kill",
  "storage/contracts",
  "postgres/",
  "config/",
  "e2e/conformance",
  "e2e/auth-sweep",
  "e2e/webhooks",
  "hammer/",
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
  // Long enough for a busy machine: only tests that hang should fail.
  testTimeout: 60_000,
  hookTimeout: 60_000,
  expect: { poll: { timeout: 30_000 } },
};

/**
 * Versions of LangGraph.js, from `langgraph-versions`, with which to run the hosting tests instead of the development
 * version: `HEDDLE_TEST_LANGGRAPH="1.0 1.3"`.
 */
const versions = process.env["HEDDLE_TEST_LANGGRAPH"]?.split(" ") ?? [];

/** `npm run test:cluster`: the suite of the interface against the first of three nodes of a cluster. */
const CLUSTER = {
  test: {
    ...shared,
    name: "cluster",
    include: ["test/e2e/**/*.test.ts"],
    exclude: [...MEASURED, ...PROCESSES, "**/node_modules/**"],
    isolate: false,
    globalSetup: join(import.meta.dirname, "e2e/support/cluster-database.ts"),
    setupFiles: join(import.meta.dirname, "e2e/support/not-in-a-cluster.ts"),
  },
};
const isCluster = process.env["HEDDLE_TEST_CLUSTER"] !== undefined;

/** Makes the tests, and what they import, use LangGraph.js from another directory. */
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
    // Many tests wait for processes that they have started.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: InOrder },
    // A later run has nothing to compile. The cache does not record where imports were resolved.
    experimental: { fsModuleCache: versions.length === 0 },
    projects:
      versions.length > 0
        ? versions.map(projectOf)
        : isCluster
          ? [CLUSTER]
          : [
              {
                test: {
                  ...shared,
                  name: "together",
                  include: ["test/**/*.test.ts"],
                  exclude: [...MEASURED, BROWSER, ...PROCESSES, "**/node_modules/**"],
                  isolate: false,
                },
              },
              { test: { ...shared, name: "measured", include: MEASURED, isolate: true } },
              // `npm run test:processes`
              { test: { ...shared, name: "processes", include: PROCESSES, isolate: false } },
              // `npm run test:browser`: a third of the time of all tests, and it needs Chromium.
              {
                test: {
                  ...shared,
                  name: "browser",
                  include: [BROWSER],
                  isolate: false,
                  globalSetup: join(import.meta.dirname, "browser/pages.ts"),
                },
              },
            ],
  },
});
