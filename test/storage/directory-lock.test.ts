import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { lockDirectory } from "../../src/storage/directory-lock.ts";
import { openStorage } from "../../src/storage/open-storage.ts";
import { threadKey, Writer } from "./samples.ts";
import { compile, type Program } from "../fixtures/compile.ts";
import { deps, temporary } from "./support.ts";

let room: ReturnType<typeof temporary>;
let children: ChildProcess[] = [];
let program: Program;

beforeAll(async () => {
  program = await compile(fileURLToPath(new URL("lock-child.ts", import.meta.url)));
  return program.remove;
});

beforeEach(() => {
  room = temporary();
});

afterEach(async () => {
  for (const child of children) {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
  }
  children = [];
  room.remove();
});

/** A real second process. `ask` makes it try to lock, and resolves with the result. */
async function another(path = room.path): Promise<{ child: ChildProcess; ask: () => Promise<string> }> {
  const child = spawn(process.execPath, [program.script, path], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  children.push(child);
  const lines: string[] = [];
  const waiting: ((line: string) => void)[] = [];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    for (const line of text.trim().split("\n")) (waiting.shift() ?? ((one) => lines.push(one)))(line);
  });
  const line = (): Promise<string> =>
    new Promise((resolve) => {
      const there = lines.shift();
      if (there === undefined) waiting.push(resolve);
      else resolve(there);
    });
  expect(await line()).toBe("ready");
  return {
    child,
    ask: () => {
      child.stdin.write("go\n");
      return line();
    },
  };
}

const leftOver = (): string[] => readdirSync(room.path).filter((name) => name !== "heddle.lock");

test("a second lock in this process is refused, by whatever path, and the first one stays", () => {
  const lock = lockDirectory(room.path);
  const link = join(room.path, "link");
  symlinkSync(room.path, link);
  for (const path of [room.path, `${room.path}/.`, link]) {
    expect(() => lockDirectory(path)).toThrow(
      expect.objectContaining({
        code: "storage.locked",
        message: expect.stringContaining(String(process.pid)) as string,
      }),
    );
  }
  expect(existsSync(join(room.path, "heddle.lock"))).toBe(true);
  lock.release();
  const next = lockDirectory(room.path);
  // A second release does nothing: the lock belongs to another one by now.
  lock.release();
  expect(() => lockDirectory(room.path)).toThrow("is open in this process");
  next.release();
  expect(existsSync(join(room.path, "heddle.lock"))).toBe(false);
});

test("another process is refused with the directory and our number, until we let go", async () => {
  const lock = lockDirectory(room.path);
  const { ask, child } = await another();
  expect(await ask()).toBe("storage.locked");
  lock.release();
  expect(await ask()).toBe("locked");
  expect(() => lockDirectory(room.path)).toThrow(
    expect.objectContaining({
      code: "storage.locked",
      message: expect.stringMatching(new RegExp(`${room.path}.*process ${String(child.pid)}`)) as string,
    }),
  );
  expect(leftOver()).toEqual([]);
});

test("the lock of a process that was killed is taken over", async () => {
  const { ask, child } = await another();
  expect(await ask()).toBe("locked");
  child.kill("SIGKILL");
  await once(child, "exit");
  const lock = lockDirectory(room.path);
  expect(leftOver()).toEqual([]);
  lock.release();
});

test("of many that find a dead process's lock, one takes it over", async () => {
  const dead = await another();
  expect(await dead.ask()).toBe("locked");
  const rivals = await Promise.all([another(), another(), another(), another()]);
  dead.child.kill("SIGKILL");
  await once(dead.child, "exit");
  const answers = await Promise.all(rivals.map((rival) => rival.ask()));
  expect(answers.sort()).toEqual(["locked", "storage.locked", "storage.locked", "storage.locked"]);
}, 30_000);

test.each([
  ["a number that came again", { start: "1" }],
  ["an earlier boot", { boot: "another" }],
  ["another container", { space: "pid:[1]" }],
  ["a copy of the directory", { ino: 1 }],
  ["nobody", { pid: 0 }],
  ["a hostile id", { id: "../../escape" }],
])("a lock of %s locks nothing", (_, change) => {
  lockDirectory(room.path).release();
  const held = lockDirectory(room.path);
  const file = join(room.path, "heddle.lock");
  const content = JSON.parse(readFileSync(file, "utf8")) as object;
  held.release();
  writeFileSync(file, "");
  writeFileSync(file, JSON.stringify({ ...content, ...change }));
  lockDirectory(room.path).release();
  expect(leftOver()).toEqual([]);
});

test("a take-over that was itself cut short is taken over", () => {
  const dead = { pid: 0, start: "", boot: "", space: "", ino: 0 };
  const file = join(room.path, "heddle.lock");
  writeFileSync(file, JSON.stringify({ ...dead, id: "lock-first" }));
  writeFileSync(`${file}.lock-first`, JSON.stringify({ ...dead, id: "lock-second" }));
  const lock = lockDirectory(room.path);
  expect(leftOver()).toEqual([]);
  lock.release();
});

test.each(["", "null", "{", '{"pid":1}'])("a lock file that holds %j locks nothing", (text) => {
  writeFileSync(join(room.path, "heddle.lock"), text);
  const lock = lockDirectory(room.path);
  expect(() => lockDirectory(room.path)).toThrow("is open in this process");
  lock.release();
});

test("who lost the lock does not delete another one's", () => {
  const lock = lockDirectory(room.path);
  const file = join(room.path, "heddle.lock");
  writeFileSync(file, JSON.stringify({ pid: 1, id: "lock-other" }));
  lock.release();
  expect(existsSync(file)).toBe(true);
});

test("a second open leaves the first storage alone, and what it has acknowledged", async () => {
  const options = { kind: "level", directory: room.path } as const;
  const first = await openStorage(options, deps);
  const one = new Writer(() => first.journal, threadKey(1));
  await one.append();
  await expect(openStorage(options, deps)).rejects.toMatchObject({ code: "storage.locked" });
  const { ask } = await another();
  expect(await ask()).toBe("storage.locked");
  await one.append();
  await first.close();
  await first.close();
  const second = await openStorage(options, deps);
  expect(await second.journal.thread(one.key)).toEqual(one.record);
  await second.close();
});

test("a copy of a directory in use can be opened", async () => {
  const directory = join(room.path, "data");
  const first = await openStorage({ kind: "level", directory }, deps);
  const one = new Writer(() => first.journal, threadKey(1));
  await one.append();
  const copy = join(room.path, "copy");
  cpSync(directory, copy, { recursive: true });
  const second = await openStorage({ kind: "level", directory: copy }, deps);
  expect(await second.journal.thread(one.key)).toEqual(one.record);
  await second.close();
  await first.close();
});
