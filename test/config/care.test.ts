import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { build, heddle, heddleBeside, Running } from "./process.ts";
import { connect, Home, saying } from "./project.ts";

const home = new Home({ isInstalled: true });
vi.setConfig({ testTimeout: 60_000 });
beforeAll(build, 120_000);
afterAll(() => home.remove());

const config = () =>
  home.project("care", {
    "a.mjs": `import { graph, list } from "heddle";
      export const a = ${saying('"x".repeat(20_000)')};
      export const large = ${saying("Array.from({ length: 60_000 }, (_, i) => ({ i }))")};
      export const leave = ${saying("process.exit(Number(process.env.LEAVE_WITH))")};`,
    "heddle.json": { graphs: { a: "./a.mjs:a", large: "./a.mjs:large", leave: "./a.mjs:leave" } },
  });

async function runs(server: Running, count: number): Promise<string[]> {
  const client = connect(server);
  const one = async () => {
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "a", { input: {} });
    return thread_id;
  };
  const made: string[] = [];
  while (made.length < count) made.push(...(await Promise.all(Array.from({ length: 8 }, one))));
  return made;
}

describe("heddle backup", () => {
  test("copies a data directory that is written to, with all that was acknowledged before", async () => {
    const data = home.data("live");
    const target = home.data("copy");
    const server = await Running.start(["--config", config(), "--data", data]);
    const before = await runs(server, 200);
    let going = true;
    const more = (async () => {
      while (going) await runs(server, 8);
    })();
    // Asynchronously, because the copy is made by another process while this one continues to write.
    const { status, stdout, stderr } = await heddleBeside(["backup", target, "--data", data]);
    going = false;
    await more;
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toContain(`was copied to ${target}`);
    expect(readdirSync(data).filter((name) => name.startsWith("backup-"))).toEqual([]);

    expect(heddle(["check", "--data", target])).toEqual({
      status: 0,
      stdout: `${target} is whole\n`,
      stderr: "",
    });
    const copied = await Running.start(["--config", config(), "--data", target]);
    const client = connect(copied);
    const found = await Promise.all(before.map((thread) => client.threads.get(thread)));
    expect(found.map(({ thread_id, status }) => [thread_id, status])).toEqual(
      before.map((thread) => [thread, "idle"]),
    );
    expect((await client.threads.getState<{ said: string[] }>(before.at(-1) ?? "")).values.said).toHaveLength(
      1,
    );
  });

  test("refuses a target with something in it, and a data directory that is none", () => {
    home.project("full", { file: "" });
    const full = join(home.path, "full");
    const none = home.data("none");
    expect(heddle(["backup", full, "--data", none])).toMatchObject({
      status: 1,
      stderr: `heddle: There is no data directory ${none}; name it with --data\n`,
    });
    expect(heddle(["backup", home.data("new"), "--data", full])).toMatchObject({
      status: 1,
      stderr: `heddle: There is no data in ${full}; name the data directory with --data\n`,
    });
  });

  test("refuses a target within the data directory", () => {
    const data = home.data("outer");
    mkdirSync(join(data, "level"), { recursive: true });
    for (const target of [data, join(data, "inner"), join(data, "level", "inner")]) {
      expect(heddle(["backup", target, "--data", data])).toMatchObject({
        status: 1,
        stderr: `heddle: The target ${target} is within the data directory ${data}; choose another one\n`,
      });
    }
  });
});

test.each(["check", "repair", "repair --accept"])(
  "heddle %s refuses a directory without data, and writes nothing into it",
  (name) => {
    const command = name.split(" ");
    const pictures = home.data(`pictures-${command.join("")}`);
    const empty = home.data(`empty-${command.join("")}`);
    mkdirSync(empty);
    mkdirSync(pictures);
    writeFileSync(join(pictures, "a.txt"), "");
    for (const [data, files] of [[empty, []] as const, [pictures, ["a.txt"]] as const]) {
      expect(heddle([...command, "--data", data])).toEqual({
        status: 1,
        stdout: "",
        stderr: `heddle: There is no data in ${data}; name the data directory with --data\n`,
      });
      expect(readdirSync(data)).toEqual(files);
    }
  },
);

test("data that cannot be written to are backed up; a check says to do so first", async () => {
  const data = home.data("read-only");
  const server = await Running.start(["--config", config(), "--data", data]);
  await runs(server, 8);
  expect(await server.stop()).toBe(0);
  const into = home.data("writable");
  mkdirSync(into);
  chmodSync(data, 0o555);
  try {
    const target = join(into, "copy");
    const check = heddle(["check", "--data", data], { canWriteAll: false });
    expect(check).toMatchObject({ status: 1, stdout: "" });
    expect(check.stderr).toMatch(
      /^heddle: The directory .* cannot be written to: EACCES.*; a check writes to the data, so make a copy with "heddle backup DIR", and check that\n$/,
    );
    expect(heddle(["backup", target, "--data", data], { canWriteAll: false })).toMatchObject({
      status: 0,
      stderr: "",
    });
    expect(readdirSync(join(target, "level")).filter((name) => name.startsWith("backup-"))).toEqual([]);
    expect(heddle(["check", "--data", target])).toMatchObject({ status: 0 });
  } finally {
    chmodSync(data, 0o755);
  }
});

describe("heddle check and repair", () => {
  test("damage is told, and what can be is rebuilt", async () => {
    const data = home.data("damaged");
    const server = await Running.start(["--config", config(), "--data", data]);
    const [thread = ""] = await runs(server, 8);
    expect(heddle(["check", "--data", data])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("is open in process"),
    });
    expect(await server.stop()).toBe(0);
    expect(heddle(["check", "--data", data])).toMatchObject({ status: 0 });

    rmSync(join(data, "level", "CURRENT"));
    expect(heddle(["check", "--data", data])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('run "heddle repair"'),
    });
    expect(heddle(["repair", "--data", data])).toMatchObject({ status: 0, stderr: "" });
    expect(heddle(["check", "--data", data])).toMatchObject({ status: 0 });
    // After a repair the directory contains the quarantined data.
    const copy = home.data("repaired");
    expect(heddle(["backup", copy, "--data", data])).toMatchObject({ status: 0, stderr: "" });
    expect(heddle(["check", "--data", copy])).toMatchObject({ status: 0 });
    const again = await Running.start(["--config", config(), "--data", data]);
    expect(await connect(again).threads.get(thread)).toMatchObject({ thread_id: thread });
    expect(await again.stop()).toBe(0);

    // Damages a byte in the middle of the stored data.
    const table = readdirSync(join(data, "level"))
      .map((name) => join(data, "level", name))
      .filter((path) => /\.(ldb|log)$/.test(path))
      .toSorted((a, b) => readFileSync(b).length - readFileSync(a).length)[0];
    const bytes = readFileSync(table ?? "");
    const middle = bytes.length >> 1;
    bytes.fill(0x55, middle, middle + 64);
    writeFileSync(table ?? "", bytes);
    expect(heddle(["check", "--data", data]).status).toBe(1);
  });

  test("a check that pauses between long pieces of work goes on to its end", async () => {
    const data = home.data("large");
    const server = await Running.start(["--config", config(), "--data", data]);
    const client = connect(server);
    for (let i = 0; i < 2; i++) {
      const { thread_id } = await client.threads.create();
      await client.runs.wait(thread_id, "large", { input: {} });
    }
    expect(await server.stop()).toBe(0);
    const whole = { status: 0, stdout: `${data} is whole\n`, stderr: "" };
    expect(heddle(["check", "--data", data])).toEqual(whole);
    expect(heddle(["repair", "--data", data])).toMatchObject({ status: 0, stderr: "" });
    expect(heddle(["check", "--data", data])).toEqual(whole);
  });

  test("a loss is accepted: what was kept back is served as it is stored, once", async () => {
    const data = home.data("accepted");
    const server = await Running.start(["--config", config(), "--data", data]);
    await runs(server, 8);
    expect(await server.stop()).toBe(0);
    const database = join(data, "level");
    const log = readdirSync(database).find((name) => name.endsWith(".log")) ?? "";
    const bytes = readFileSync(join(database, log));
    bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
    writeFileSync(join(database, log), bytes);
    const left = heddle(["check", "--data", data]);
    expect(left).toMatchObject({ status: 1, stderr: "" });
    expect(left.stdout).toMatch(/missing from the log; may have held thread [-0-9a-f]{36}/);
    const end =
      /: \d+ findings?, [1-8] threads? affected \([1-8] refused\)\nRestore a backup, .*"heddle repair --accept"\n$/;
    expect(left.stdout).toMatch(end);
    // The output contains no keys of the database.
    expect(left.stdout).not.toMatch(/_\/|!\w+\//);
    const repaired = heddle(["repair", "--data", data]);
    expect(repaired).toMatchObject({ status: 1, stderr: "" });
    expect(repaired.stdout).toMatch(/^.* was rebuilt\n.*missing from the log; may have held/);
    expect(repaired.stdout).toMatch(end);
    const accepted = heddle(["repair", "--accept", "--data", data]);
    expect(accepted).toMatchObject({ status: 0, stderr: "" });
    expect(accepted.stdout).toMatch(/^accepted: .*missing from the log; may have held thread [-0-9a-f]{36}/);
    expect(accepted.stdout).toContain(`${data} is served again as it is stored\n`);
    expect(readFileSync(join(data, "damage-accepted.json"), "utf8")).toContain("missing from the log");
    expect(heddle(["repair", "--accept", "--data", data]).stdout).toContain("there is no loss to accept");
  });
});

describe("a graph that ends the process", () => {
  test.each([
    ["start", 0, 1],
    ["start", 7, 7],
    ["dev", 0, 1],
  ])(
    "of `%s`, while it is loaded, with %i is told of, and the process ends with %i",
    (command, code, status) => {
      const path = home.project(`leave-at-load-${command}-${code}`, {
        "a.mjs": `process.exit(${code});`,
        "heddle.json": { graphs: { a: "./a.mjs:a" } },
      });
      const ended = heddle([
        command,
        "--config",
        path,
        "--port",
        "0",
        "--data",
        home.data(`load-${command}-${code}`),
      ]);
      expect(ended).toMatchObject({ status, stdout: "" });
      expect(ended.stderr).toContain(
        "a graph ended the process during the start: its file while it was loaded,",
      );
      expect(ended.stderr).toMatch(/a\.mjs\S*:1:/);
    },
  );

  test("is not blamed for a start that fails", () => {
    const path = home.project("fails-at-load", {
      "a.mjs": "throw new Error('no such luck');",
      "heddle.json": { graphs: { a: "./a.mjs:a" } },
    });
    const ended = heddle(["start", "--config", path, "--port", "0", "--data", home.data("fails-at-load")]);
    expect(ended.status).toBe(1);
    expect(ended.stderr).toContain("no such luck");
    expect(ended.stderr).not.toContain("ended the process");
  });

  test.each([
    [0, 1],
    [7, 7],
  ])("with %i is told of, and the process ends with %i", async (code, status) => {
    const args = ["--config", config(), "--data", home.data(`leave-${code}`)];
    const server = await Running.start(args, { LEAVE_WITH: String(code) });
    const client = connect(server);
    const { thread_id } = await client.threads.create();
    await client.runs.create(thread_id, "leave", { input: {} }).catch(() => undefined);
    expect(await server.ended).toBe(status);
    expect(server.output).toContain("a graph ended the process");
    expect(server.output).toMatch(/a\.mjs:\d+/);
    // The run continues before the server is ready, or just after.
    const again = heddle(["start", "--port", "0", ...args], { env: { LEAVE_WITH: String(code) } });
    expect(again.status).toBe(status);
    expect(again.stderr).toMatch(/"a graph ended the process(;|.* or a node of a run that was resumed)/);
    expect(again.stderr).toMatch(/a\.mjs:\d+/);
  });
});
