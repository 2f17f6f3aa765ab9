import { expect, test } from "vitest";
import { ProgressDisplay } from "../../src/cli/progress-display.ts";
import type { Progress } from "../../src/ports/work-progress.ts";
import { SimulatedClock } from "../simulation/clock.ts";
import { SimulatedScheduler } from "../simulation/scheduler.ts";

const ERASE = "\r\u001b[2K";

function display(terminal: { readonly columns?: number } | undefined) {
  const clock = new SimulatedClock();
  const scheduler = new SimulatedScheduler(clock);
  const written: string[] = [];
  const write = (text: string) => void written.push(text);
  const lines: { readonly text: string; readonly progress: Progress }[] = [];
  const shown = new ProgressDisplay({
    clock,
    scheduler,
    ...(terminal && { terminal: { isTTY: true, ...terminal, write } }),
    line: (text, progress) => void lines.push({ text, progress }),
  });
  return { shown, written, lines, scheduler };
}

const tables = (done: number): Progress => ({
  work: "reading the tables",
  done,
  total: 2_000_000_000,
  unit: "bytes",
});

test("a terminal shows the work in one line, which is written again, and erased at the end", async () => {
  const { shown, written, lines, scheduler } = display({ columns: 120 });
  shown.onProgress(tables(0));
  await scheduler.advance(400);
  expect(written).toEqual([]);
  shown.onProgress(tables(120_500_000));
  await scheduler.advance(100);
  expect(written).toEqual([`${ERASE}reading the tables: 120 of 2,000 MB (6 %), 0 s`]);
  shown.onProgress(tables(1_000_000_000));
  await scheduler.advance(3_000);
  expect(written.at(-1)).toBe(`${ERASE}reading the tables: 1,000 of 2,000 MB (50 %), 3 s`);
  shown.onProgress({ work: "rebuilding the database" });
  await scheduler.advance(1_000);
  expect(written.at(-1)).toBe(`${ERASE}rebuilding the database, 1 s`);
  shown.onProgress({ work: "checking the records", done: 12_000, unit: "keys" });
  await scheduler.advance(1_000);
  expect(written.at(-1)).toBe(`${ERASE}checking the records: 12,000 keys, 1 s`);
  shown.end();
  expect(written.at(-1)).toBe(ERASE);
  const count = written.length;
  await scheduler.advance(60_000);
  expect([written.length, lines]).toEqual([count, []]);
});

test("work that is done at once shows nothing", async () => {
  const { shown, written, scheduler } = display({});
  shown.onProgress(tables(0));
  await scheduler.advance(200);
  shown.end();
  await scheduler.advance(60_000);
  expect(written).toEqual([]);
});

test("other lines of the terminal stand above it", async () => {
  const { shown, written, scheduler } = display({});
  shown.onProgress(tables(0));
  await scheduler.advance(500);
  shown.beside(() => written.push("damaged\n"));
  await scheduler.advance(100);
  expect(written.slice(1)).toEqual([
    ERASE,
    "damaged\n",
    expect.stringMatching(/reading the tables: 0 of 2,000 MB \(0 %\), 0 s$/),
  ]);
  shown.beside(() => written.push("a\n"));
  shown.beside(() => written.push("b\n"));
  expect(written.slice(-3)).toEqual([ERASE, "a\n", "b\n"]);
});

test("it does not wrap on a narrow terminal", async () => {
  const { shown, written, scheduler } = display({ columns: 10 });
  shown.onProgress(tables(0));
  await scheduler.advance(500);
  expect(written).toEqual([`${ERASE}reading t`]);
});

test("a terminal that does not know its width is taken for one of 80 columns", async () => {
  const { shown, written, scheduler } = display({ columns: 0 });
  shown.onProgress({ work: "w".repeat(100) });
  await scheduler.advance(500);
  expect(written).toEqual([ERASE + "w".repeat(79)]);
});

test("elsewhere there is a line every 10 s, none before", async () => {
  const { shown, lines, scheduler } = display(undefined);
  shown.onProgress(tables(0));
  await scheduler.advance(9_999);
  shown.onProgress(tables(1_000_000));
  expect(lines).toEqual([]);
  await scheduler.advance(1);
  await scheduler.advance(20_000);
  expect(lines.map(({ text }) => text)).toEqual([
    "reading the tables: 1 of 2,000 MB (0 %), 10 s",
    "reading the tables: 1 of 2,000 MB (0 %), 20 s",
    "reading the tables: 1 of 2,000 MB (0 %), 30 s",
  ]);
  expect(lines[0]?.progress).toEqual(tables(1_000_000));
  shown.end();
  await scheduler.advance(60_000);
  expect(lines).toHaveLength(3);
});
