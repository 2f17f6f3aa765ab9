import { describe, expect, test } from "vitest";
import { firstSlot, nextSlot, nextSlots } from "../../../src/service/crons/cron-schedule.ts";

const at = (text: string) => Date.parse(text);
const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString().slice(0, 16));

/** The next slots after a time. */
function slots(schedule: string, timezone: string | null, after: string, count: number) {
  const found: (string | null)[] = [];
  let last = at(after);
  for (let i = 0; i < count; i++) {
    const next = nextSlot({ schedule, timezone }, last);
    found.push(iso(next));
    if (next === null) break;
    expect(next).toBeGreaterThan(last);
    last = next;
  }
  return found;
}

describe("slots", () => {
  test.each([
    ["* * * * *", null, "2026-01-01T00:00:30.500Z", ["2026-01-01T00:01", "2026-01-01T00:02"]],
    // A slot does not follow itself.
    ["* * * * *", null, "2026-01-01T00:01:00.000Z", ["2026-01-01T00:02"]],
    ["0 9 * * MON-FRI", "America/New_York", "2026-01-02T15:00:00Z", ["2026-01-05T14:00", "2026-01-06T14:00"]],
    ["@daily", "Asia/Tokyo", "2026-01-01T00:00:00Z", ["2026-01-01T15:00", "2026-01-02T15:00"]],
    ["0 12 29 2 *", null, "2026-01-01T00:00:00Z", ["2028-02-29T12:00"]],
    // Day of the month or day of the week, as in cron.
    [
      "0 0 13 * FRI",
      null,
      "2026-01-01T00:00:00Z",
      ["2026-01-02T00:00", "2026-01-09T00:00", "2026-01-13T00:00"],
    ],
  ] as const)("%s in %s", (schedule, timezone, after, expected) => {
    expect(slots(schedule, timezone, after, expected.length)).toEqual(expected);
  });

  test("where summer leaps over one, it comes at the first moment behind, once", () => {
    expect(slots("30 2 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", 3)).toEqual([
      "2026-03-28T01:30",
      "2026-03-29T01:00",
      "2026-03-30T00:30",
    ]);
  });

  test("where winter passes one twice, it comes once; each minute comes each time", () => {
    expect(slots("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2)).toEqual([
      "2026-10-25T00:30",
      "2026-10-26T01:30",
    ]);
    expect(slots("30 2 * * *", "America/New_York", "2026-11-01T00:00:00Z", 2)).toHaveLength(2);
  });

  test("day after day through a year there is one slot a day, in every zone", () => {
    for (const timezone of [
      "Europe/Berlin",
      "America/New_York",
      "Australia/Lord_Howe",
      "America/Sao_Paulo",
      "Asia/Kolkata",
    ]) {
      const day = new Intl.DateTimeFormat("sv", { timeZone: timezone });
      const days = new Set<string>();
      let last = at("2026-01-01T00:00:00Z");
      let count = 0;
      for (; last < at("2027-01-01T00:00:00Z"); count++) {
        last = nextSlot({ schedule: "15 2 * * *", timezone }, last) ?? Number.POSITIVE_INFINITY;
        days.add(day.format(last));
      }
      expect(days.size, timezone).toBe(count);
      expect(count, timezone).toBeGreaterThanOrEqual(365);
    }
  });
});

describe("the next slots", () => {
  const next = (end: string | null, count: number) =>
    nextSlots(
      { schedule: "0 9 * * *", timezone: "Europe/Berlin" },
      { after: at("2026-03-27T12:00:00Z"), end: end === null ? null : at(end), count },
    ).map(iso);

  test("are those at which a cron would fire, also where summer begins", () => {
    expect(next(null, 3)).toEqual(["2026-03-28T08:00", "2026-03-29T07:00", "2026-03-30T07:00"]);
    expect(next(null, 1)).toEqual(["2026-03-28T08:00"]);
  });

  test("are none after the end; one at the end is one", () => {
    expect(next("2026-03-29T07:00:00Z", 3)).toEqual(["2026-03-28T08:00", "2026-03-29T07:00"]);
    expect(next("2026-03-28T07:59:59Z", 3)).toEqual([]);
  });

  test("are an error where none ever comes", () => {
    const never = { schedule: "0 0 30 2 *", timezone: null };
    expect(() => nextSlots(never, { after: 0, end: null, count: 3 })).toThrow("never comes");
  });
});

describe("what is refused, by name", () => {
  test.each([
    ["* * * * * *", null, "schedule"],
    ["* * * *", null, "schedule"],
    ["every day", null, "schedule"],
    ["2020-01-01T00:00:00", null, "schedule"],
    ["61 * * * *", null, "schedule"],
    ["0 0 * * 8", null, "schedule"],
    ["@reboot", null, "schedule"],
    ["", null, "schedule"],
    ["0 0 30 2 *", null, "schedule"],
    ["* * * * *", "Mars/Olympus", "timezone"],
    ["* * * * *", "", "timezone"],
    // Newer versions of Node know offsets, and older ones do not.
    ["* * * * *", "+14:00", "timezone"],
    ["* * * * *", "-0330", "timezone"],
  ])("%j in %j", (schedule, timezone, field) => {
    expect(() => firstSlot({ schedule, timezone }, at("2026-01-01T00:00:00Z"))).toThrow(
      expect.objectContaining({
        code: "validation.failed",
        fields: [expect.objectContaining({ at: field })],
      }),
    );
  });
});
