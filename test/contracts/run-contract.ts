import { test } from "vitest";
import type { ContractCheck } from "../../src/contracts/contract.ts";

/** Runs each check of a contract with a harness of its own. */
export function runContract<Harness>(
  name: string,
  contract: readonly ContractCheck<Harness>[],
  make: () => Promise<{ readonly harness: Harness; end?(): Promise<void> }>,
): void {
  test.describe(name, () => {
    // oxlint-disable-next-line vitest/expect-expect -- the checks assert
    test.each(contract.map((check) => [check.title, check] as const))("%s", async (_, check) => {
      const { harness, end } = await make();
      try {
        await check.run(harness);
      } finally {
        await end?.();
      }
    });
  });
}
