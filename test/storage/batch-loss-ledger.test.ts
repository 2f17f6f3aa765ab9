import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { BatchLossLedger } from "../../src/storage/batch-loss-ledger.ts";
import { deps, temporary } from "./support.ts";

/** Bytes of a batch after which the ledger starts a new file. */
const MANY = 41 * 1024 * 1024;

test("a new file that cannot be made fails no batch: it is warned of once, and the old file goes on", async () => {
  const room = temporary();
  onTestFinished(room.remove);
  const warnings: string[] = [];
  const logger = { ...deps.logger, warn: (line: string) => void warnings.push(line) };
  const open = () => new BatchLossLedger(room.path, { logger, scheduler: deps.scheduler });
  const ledger = open();
  ledger.open(1, "boot", []);
  const blocking = [2, 3].map((number) => join(room.path, `${String(number).padStart(16, "0")}.log`));
  for (const path of blocking) mkdirSync(path);
  for (const number of [1, 2, 3]) {
    expect(ledger.add({ number, synced: true, touches: ["a"] }, number < 3 ? MANY : 1)).toBe(false);
  }
  await ledger.close();
  expect(warnings).toEqual([expect.stringContaining("the ledger of batches cannot be written")]);
  for (const path of blocking) rmSync(path, { recursive: true });
  const numbers: number[] = [];
  open().read(
    ({ number }) => numbers.push(number),
    () => {},
  );
  expect(numbers).toEqual([1, 2, 3]);
});
