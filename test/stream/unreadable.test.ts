import { expect, test } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import type { Journal } from "../../src/ports/journal.ts";
import { createRunLogRegistry } from "../../src/stream/run-log-registry.ts";
import { openStorage } from "../../src/storage/open-storage.ts";
import { aRun, threadKey, Writer } from "../storage/samples.ts";
import { deps, turns } from "../storage/support.ts";

/** A registry whose journal fails all calls of one method. */
async function failing(method: "sharedRun" | "thread", fail: () => never | Promise<never>) {
  const { journal } = await openStorage({ kind: "memory" }, deps);
  const one = new Writer(() => journal, threadKey(1));
  await one.append();
  const failingJournal: Journal = new Proxy(journal, {
    get: (target, name) => {
      if (name === method) return fail;
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === "function" ? (member.bind(target) as unknown) : member;
    },
  });
  return {
    one,
    runLogs: createRunLogRegistry({
      journal: failingJournal,
      scheduler: deps.scheduler,
      logger: deps.logger,
    }),
  };
}

const gone = () => new ServiceError("storage.unavailable", "gone");

test.each([
  [
    "the run, at once",
    "sharedRun",
    () => {
      throw gone();
    },
  ],
  ["the run, later", "sharedRun", () => Promise.reject(gone())],
  ["the thread of a run that is gone", "thread", () => Promise.reject(gone())],
] as const)("a reader is cut when the storage fails to read %s", async (_, method, fail) => {
  const { one, runLogs } = await failing(method, fail);
  const reader = runLogs.follow(one.key, aRun(one.key, 1), { after: -1 });
  await turns();
  expect(await reader.next()).toBe("cut");
  reader.close();
  expect(runLogs.counts.logs).toBe(0);
});
