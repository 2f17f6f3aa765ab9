import { expect, test } from "vitest";
import { packRefs, unpackRefs } from "../../src/storage/channel-ref-codec.ts";
import {
  checkpointRowConverter,
  runRowConverter,
  threadRowConverter,
} from "../../src/storage/stored-records.ts";
import { createRecordRowConverter } from "../../src/storage/record-row-conversion.ts";

test("a record comes back from its row", () => {
  const rows = createRecordRowConverter<{ readonly a: number; readonly b: string | null }>()(["a", "b"]);
  expect(rows.row({ b: "x", a: 1 })).toEqual([1, "x"]);
  expect(rows.record([1, null])).toEqual({ a: 1, b: null });
  // A row that was stored before the column existed.
  expect(rows.record([1])).toEqual({ a: 1, b: null });
});

test("every member has a column", () => {
  // @ts-expect-error b has none
  const rows = createRecordRowConverter<{ readonly a: number; readonly b: string }>()(["a"]);
  expect(rows.row({ a: 1, b: "lost" })).toEqual([1]);
});

test.each([
  [{ kind: "whole", at: 4096 }],
  [{ kind: "list", spans: [] }],
  [
    {
      kind: "list",
      spans: [
        { at: 1, end: 2 },
        { at: 4097, end: 9 },
      ],
    },
  ],
  [{ kind: "small", value: 4096 }],
  [{ kind: "small", value: null }],
  [{ kind: "small", value: "is" }],
] as const)("%j comes back", (ref) => {
  expect(unpackRefs(packRefs({ a: ref, is: ref }))).toEqual({ a: ref, is: ref });
});

test.each([
  ["threads", threadRowConverter],
  ["runs", runRowConverter],
  ["checkpoints", checkpointRowConverter],
] as const)("the row of %s that is spelled out has each member in its own place", (_, stored) => {
  const columnsOf = Object.keys(stored.record([])).length;
  const row = Array.from({ length: columnsOf }, (__, i) => i);
  const { record, row: rowOf } = stored as { record(row: unknown): object; row(record: object): unknown[] };
  expect(rowOf(record(row))).toEqual(row);
});
