import { expect, test } from "vitest";
import { CommandQueue } from "../../src/websocket/command-queue.ts";

const LARGE = 100_000;

/** Commands, and which were executed and refused; `turns` are the large commands that wait for their turn. */
function pendingCommands() {
  const log: string[] = [];
  const turns: (() => void)[] = [];
  const commands = new CommandQueue(
    async (id) => void log.push(`done ${id}`),
    (id, cause) => void log.push(`refused ${id}: ${(cause as Error).message}`),
    () => new Promise((resolve) => turns.push(resolve)),
  );
  const take = (id: number, length = 0, text = "") => {
    const message = text || JSON.stringify({ id, filler: "x".repeat(length) });
    commands.take(message);
  };
  const settled = async () => {
    for (let i = 0; i < 20; i++) await Promise.resolve();
  };
  return { take, turns, log, settled };
}

test("a large command waits for its turn before it is parsed, and those after it wait for it", async () => {
  const { take, turns, log, settled } = pendingCommands();
  take(1);
  take(2, LARGE);
  take(3);
  await settled();
  expect(log).toEqual(["done 1"]);
  expect(turns).toHaveLength(1);
  turns[0]?.();
  await settled();
  expect(log).toEqual(["done 1", "done 2", "done 3"]);
});

test("a large command that is sent again is executed once and refused then, and one that is no JSON is refused", async () => {
  const { take, turns, log, settled } = pendingCommands();
  take(1, LARGE);
  take(1, LARGE);
  take(2, 0, `{"id": 2, ${" ".repeat(LARGE)}`);
  for (let i = 0; i < 3; i++) {
    await settled();
    turns[i]?.();
  }
  await settled();
  expect(log).toEqual([
    "done 1",
    "refused 1: id 1 is that of an earlier command on this socket",
    "refused null: Malformed JSON in the command",
  ]);
});

test("large commands have a bound together", async () => {
  const { take, log, settled } = pendingCommands();
  for (let id = 1; id <= 3; id++) take(id, 500_000);
  await settled();
  expect(log).toEqual(["refused null: More than 32 commands, or 1 MiB of them, are not done yet"]);
});

test("a command whose id was used is not executed, and refused after the answer to the first", async () => {
  const { take, turns, log, settled } = pendingCommands();
  take(1, LARGE);
  take(2);
  take(2);
  await settled();
  expect(log).toEqual([]);
  turns[0]?.();
  await settled();
  take(1);
  await settled();
  expect(log).toEqual([
    "done 1",
    "done 2",
    "refused 2: id 2 is that of an earlier command on this socket",
    "refused 1: id 1 is that of an earlier command on this socket",
  ]);
});
