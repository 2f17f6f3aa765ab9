import { copyFileSync, readdirSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { ClassicLevel } from "classic-level";
import { expect, onTestFinished, test } from "vitest";
import { indexBytes } from "../../bench/tables.ts";
import { temporary } from "./support.ts";

test("a table that is still being written has no index yet", async () => {
  const { path: directory, remove } = temporary();
  const db = new ClassicLevel<string, Buffer>(directory, { keyEncoding: "utf8", valueEncoding: "buffer" });
  onTestFinished(async () => {
    await db.close();
    remove();
  });
  for (let i = 0; i < 2_000; i++) await db.put(`key ${i}`, Buffer.alloc(100, i));
  await db.compactRange("", "~");
  const whole = indexBytes(directory);
  expect(whole).toBeGreaterThan(1_000);
  const table = readdirSync(directory).find((name) => name.endsWith(".ldb"));
  const part = join(directory, "999999.ldb");
  for (let length = 8_192; length >= 0; length -= 1_000) {
    copyFileSync(join(directory, table as string), part);
    truncateSync(part, length);
    expect(indexBytes(directory)).toBe(whole);
  }
});
