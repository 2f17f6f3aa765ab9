import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { makeDirectory } from "../../src/storage/make-directory.ts";
import { compile } from "../fixtures/compile.ts";
import { temporary } from "./support.ts";

/** The next piece that a process prints. */
async function said({ stdout }: ChildProcess): Promise<string> {
  if (stdout === null) throw new Error("the process has no output");
  const [piece] = (await once(stdout, "data")) as [Buffer];
  return piece.toString().trim();
}

test("several processes make the same directories at once", async () => {
  const room = temporary();
  const program = await compile(fileURLToPath(new URL("make-directory-child.ts", import.meta.url)));
  const children = Array.from({ length: 3 }, () =>
    spawn(process.execPath, [program.script, room.path], { stdio: ["pipe", "pipe", "inherit"] }),
  );
  onTestFinished(async () => {
    for (const child of children) child.kill("SIGKILL");
    await program.remove();
    room.remove();
  });
  expect(await Promise.all(children.map(said))).toEqual(children.map(() => "ready"));
  for (let i = 0; i < 300; i++) {
    const answers = children.map(said);
    for (const { stdin } of children) stdin.write(`${i}\n`);
    // oxlint-disable-next-line no-await-in-loop -- all processes make one directory after the other
    expect(await Promise.all(answers)).toEqual(children.map(() => "made"));
  }
});

test("a file in the place of a directory, or of one above it, is refused and named", () => {
  const room = temporary();
  onTestFinished(() => room.remove());
  const file = join(room.path, "file");
  writeFileSync(file, "");
  for (const directory of [file, join(file, "below")]) {
    expect(() => makeDirectory(directory)).toThrow(
      expect.objectContaining({
        code: "storage.unavailable",
        message: expect.stringMatching(/file.* cannot be made: .*there is a file in its place/) as string,
      }) as Error,
    );
  }
});
