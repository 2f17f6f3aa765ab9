import { expect, test } from "vitest";
import { SemaphorePerTenant } from "../../src/ports/fair-semaphore.ts";

/** Searches whose ends are chosen. */
function searches() {
  const slots = new SemaphorePerTenant(2);
  const begun: string[] = [];
  const ends: Record<string, (error?: Error) => void> = {};
  const run = (tenant: string, name: string) =>
    slots.run(tenant, () => {
      begun.push(name);
      return new Promise<string>((resolve, reject) => {
        ends[name] = (error) => (error === undefined ? resolve(name) : reject(error));
      });
    });
  return { begun, ends, run };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test("two searches of a tenant run at a time, in order; those of others go on", async () => {
  const { begun, ends, run } = searches();
  const found = ["a1", "a2", "a3", "a4"].map((name) => run("a", name));
  found.push(run("b", "b1"));
  await turn();
  expect(begun).toEqual(["a1", "a2", "b1"]);
  ends["a2"]?.();
  await turn();
  expect(begun).toEqual(["a1", "a2", "b1", "a3"]);
  for (const name of ["a1", "a3", "b1"]) ends[name]?.();
  await turn();
  ends["a4"]?.();
  expect(await Promise.all(found)).toEqual(["a1", "a2", "a3", "a4", "b1"]);
});

test("a search that fails leaves its slot to the next", async () => {
  const { ends, run } = searches();
  const [first, second, third] = ["1", "2", "3"].map((name) => run("a", name));
  await turn();
  ends["1"]?.(new Error("closed"));
  await expect(first).rejects.toThrow("closed");
  await turn();
  ends["2"]?.();
  ends["3"]?.();
  expect([await second, await third]).toEqual(["2", "3"]);
});
