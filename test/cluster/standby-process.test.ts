import { fork } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { hasEnded, type ShardChild } from "../../src/cli/shard-processes.ts";
import { StandbyProcess } from "../../src/cli/standby-process.ts";
import { silentLogger } from "../../src/platform/log.ts";

const directory = mkdtempSync(join(tmpdir(), "heddle-standby-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
/** A process that reports at once that it has prepared, and sends back what it gets. */
const program = join(directory, "prepared.mjs");
writeFileSync(
  program,
  `process.on("message", (message) => process.send(message)); process.send("prepared");`,
);

function standby() {
  const children: ShardChild[] = [];
  /** The restarts that are due, with their delays. */
  const restarts: { readonly delay: number; readonly run: () => void }[] = [];
  let prepared = 0;
  const process = new StandbyProcess({
    scheduler: {
      soon: () => undefined,
      after: (delay, run) => {
        const restart = { delay, run };
        restarts.push(restart);
        return () => void restarts.splice(restarts.indexOf(restart), 1);
      },
    },
    logger: silentLogger,
    start: () => {
      const child = fork(program);
      onTestFinished(() => void child.kill("SIGKILL"));
      const started = new Promise<never>((_, reject) => child.once("exit", () => reject(new Error("ended"))));
      const one = { process: child, started };
      children.push(one);
      return one;
    },
    onPrepared: () => prepared++,
  });
  return { process, children, restarts, prepared: () => prepared };
}

test("a process prepares for one shard, and gets the epoch when its node owns the shard", async () => {
  const { process, children, prepared } = standby();
  process.prepare(3);
  process.prepare(3);
  expect(process.prepared).toEqual([]);
  await expect.poll(prepared).toBe(1);
  expect(process.prepared).toEqual([3]);
  expect(process.serve({ shard: 2, epoch: 7 })).toBeUndefined();
  const child = process.serve({ shard: 3, epoch: 8 });
  expect(child).toBe(children[0]);
  expect(children).toHaveLength(1);
  expect(await new Promise((resolve) => child?.process.once("message", resolve))).toEqual({ epoch: 8 });
  expect([process.prepared, process.child]).toEqual([[], undefined]);
  process.prepare(undefined);
  expect(child !== undefined && hasEnded(child.process)).toBe(false);
});

test("the preparation for another shard ends the process", async () => {
  const { process, children, prepared } = standby();
  process.prepare(0);
  await expect.poll(prepared).toBe(1);
  process.prepare(1);
  await expect.poll(() => children[0] !== undefined && hasEnded(children[0].process)).toBe(true);
  await expect.poll(() => process.prepared).toEqual([1]);
  process.prepare(undefined);
  await expect.poll(() => children[1] !== undefined && hasEnded(children[1].process)).toBe(true);
  expect(children).toHaveLength(2);
});

test("a process that ends is started again, later each time, unless it is no longer needed", async () => {
  const { process, children, restarts, prepared } = standby();
  const kill = async (index: number): Promise<void> => {
    await expect.poll(prepared).toBe(index + 1);
    children[index]?.process.kill("SIGKILL");
    await expect.poll(() => restarts.length).toBe(1);
    expect(process.prepared).toEqual([]);
  };
  process.prepare(0);
  await kill(0);
  const [first] = restarts.splice(0);
  first?.run();
  await kill(1);
  expect(restarts[0]?.delay).toBe(2 * (first?.delay ?? 0));
  process.prepare(undefined);
  expect(restarts).toEqual([]);
  expect(children).toHaveLength(2);
});
