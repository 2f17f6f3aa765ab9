// `npm test -- FILES` passes this file to Vitest. Plain `npx vitest` does not find it: tests then have 5 s each instead of 60.
import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
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

export default defineConfig({
  test: {
    // Many wait for processes that they have started.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: InOrder },
    // A run that follows another one has nothing to compile.
    experimental: { fsModuleCache: true },
    projects: [
      {
        test: {
          ...shared,
          name: "together",
          include: ["test/**/*.test.ts"],
          exclude: MEASURED,
          isolate: false,
        },
      },
      { test: { ...shared, name: "measured", include: MEASURED, isolate: true } },
    ],
  },
});
