import { afterEach, beforeEach, describe } from "vitest";
import type { Harness, Opened, Supports } from "./harness.ts";
import { delayedContract } from "./journal-delayed.ts";
import { eventsContract } from "./journal-events.ts";
import { fencingContract } from "./journal-fencing.ts";
import { forgettingContract } from "./journal-forgetting.ts";
import { keepingContract } from "./journal-keeping.ts";
import { listsContract } from "./journal-lists.ts";
import { recordsContract } from "./journal-records.ts";
import { startedContract } from "./journal-started.ts";
import { threadSearchContract } from "./thread-search.ts";

/** The contract of every journal; run for each storage. */
export function journalContract(name: string, open: () => Promise<Harness>, supports: Supports): void {
  describe(`journal on ${name}`, () => {
    let harness: Harness;
    beforeEach(async () => {
      harness = await open();
    });
    afterEach(() => harness.close());
    const opened: Opened = () => harness;

    describe("fencing and order", () => {
      fencingContract(opened, supports);
    });
    describe("records", () => {
      recordsContract(opened, supports);
    });
    describe("values", () => {
      listsContract(opened, supports);
    });
    describe("events", () => {
      eventsContract(opened, supports);
    });
    describe("runs that have begun", () => {
      startedContract(opened);
    });
    describe("delays, and requests that come again", () => {
      delayedContract(opened);
    });
    describe("finding threads", () => {
      threadSearchContract(opened, supports);
    });
    describe("copying and pruning", () => {
      keepingContract(opened, supports);
    });
    describe("taking back", () => {
      forgettingContract(opened, supports);
    });
  });
}
