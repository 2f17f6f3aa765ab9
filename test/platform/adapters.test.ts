import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { bootId } from "../../src/platform/boot-id.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { systemRandom } from "../../src/platform/random.ts";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import { clockContract } from "../contracts/clock.ts";
import { randomContract } from "../contracts/random.ts";
import { schedulerContract } from "../contracts/scheduler.ts";

/** The only test that waits for real time, because it tests the adapters for it. */
/** On a busy machine a timer may fire before ready work, so one more turn is awaited. */
const pass = (ms: number) =>
  new Promise<void>((resolve) => setTimeout(() => setImmediate(() => setImmediate(resolve)), ms + 2));

clockContract("the machine's", () => ({ clock: systemClock, pass }));
randomContract("the machine's", systemRandom);
schedulerContract("the event loop", () => ({
  scheduler: systemScheduler,
  now: () => systemClock.mono(),
  pass,
}));

test.each([
  ["a timer does not keep the process alive", "60_000, () => {}", ""],
  ["a timer that work waits for does", '10, () => console.log("over"), true', "over\n"],
])("%s", (_, timer, output) => {
  const module = new URL("../../src/platform/scheduler.ts", import.meta.url).href;
  const script = `import { systemScheduler } from ${JSON.stringify(module)}; systemScheduler.after(${timer});`;
  const args = ["--import", "tsx", "--input-type=module", "-e", script];
  const ended = spawnSync(process.execPath, args, { timeout: 20_000, encoding: "utf8" });
  expect(ended).toMatchObject({ status: 0, stderr: "", stdout: output });
});

test("the boot has one name, however often it is asked", () => {
  const random = systemRandom();
  expect(bootId(random)).toMatch(/^[0-9a-f-]{32,36}$/);
  if (process.platform === "linux") expect(bootId(random)).toBe(bootId(random));
});

test("where the system does not name it, each process is a boot of its own", () => {
  const random = systemRandom();
  expect(bootId(random, "/nowhere")).not.toBe(bootId(random, "/nowhere"));
});
