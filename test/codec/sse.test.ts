import { expect, test } from "vitest";
import { lazyJson } from "../../src/codec/large-json.ts";
import { LargeSse, SseBatch } from "../../src/codec/sse.ts";

const KIB = 1024;
const value = { text: "é😀\n".repeat(100 * KIB), list: Array.from({ length: 50_000 }, (_, i) => i) };
const EXPECTED = `event: values\ndata: ${JSON.stringify(value)}\nid: 1\n\nevent: custom\ndata: "${"é".repeat(300 * KIB)}"\nid: 2\n\n`;

function large(isShared: boolean): LargeSse {
  const batch = new SseBatch(isShared);
  batch.put("values", lazyJson(value), 1);
  batch.put("custom", `"${"é".repeat(300 * KIB)}"`, 2);
  const output = batch.done();
  if (!(output instanceof LargeSse)) throw new TypeError("it is short");
  return output;
}

test.each([true, false])("large events are written in pieces of 64 KiB at most; shared: %s", (isShared) => {
  const pieces = [...large(isShared).pieces()];
  expect(Buffer.concat(pieces).toString() === EXPECTED).toBe(true);
  expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThanOrEqual(64 * KIB);
});

test("nothing is written before it is read, and what is shared is written once", () => {
  const output = large(true);
  let reads = 0;
  const counted = {
    text: value.text,
    get late() {
      reads++;
      return 1;
    },
  };
  const batch = new SseBatch(true);
  batch.put("values", lazyJson(counted), 1);
  const before = reads;
  const late = batch.done() as LargeSse;
  expect(reads).toBe(before);
  expect([...late.pieces()].length).toBeGreaterThan(1);
  expect(reads).toBeGreaterThan(before);
  const [first, second] = [output.pieces(), output.pieces()];
  for (const piece of first) expect(second.next().value).toBe(piece);
  expect(second.next().done).toBe(true);
});
