import { Cron } from "croner";
import { invalidField } from "../../model/errors.ts";

/** A cron schedule: five fields (or a name such as `@daily`), in a time zone. */
export interface Schedule {
  readonly schedule: string;
  readonly timezone: string | null;
}

/** The fields of a schedule, each with the values that it takes. */
const FIELDS = [
  ["minute", "0 to 59"],
  ["hour", "0 to 23"],
  ["day of the month", "1 to 31, or L for the last"],
  ["month", "1 to 12, or JAN to DEC"],
  ["day of the week", "0 to 7, or SUN to SAT"],
] as const;

/** Names that stand for five fields. */
const NAMED = /^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$/i;

/**
 * The first slot (a time at which the schedule fires) after `after`, in epoch milliseconds; null when there is none.
 *
 * If the schedule names single hours, a slot in the hour that is skipped in spring moves to the first moment after that hour, and a slot in
 * the hour that is repeated in autumn fires once. If its hours are `*` or a range, it does not fire in the skipped hour, and fires in both
 * repeated hours.
 * @throws ServiceError `validation.failed`
 */
export function nextSlot({ schedule, timezone }: Schedule, after: number): number | null {
  const fields = schedule.trim().split(/\s+/);
  if (fields.length !== 5 && !NAMED.test(schedule.trim())) {
    throw invalidField(
      "schedule",
      "must have five fields: minute, hour, day of the month, month, day of the week",
    );
  }
  let cron: Cron;
  try {
    cron = new Cron(schedule.trim(), { timezone: "UTC", paused: true });
  } catch (cause) {
    throw invalidField("schedule", faultIn(fields) ?? `is no cron expression: ${messageOf(cause)}`, cause);
  }
  if (timezone === null) return slotOf(cron, after);
  if (!isTimezone(timezone)) throw noTimezone(timezone);
  return slotOf(new Cron(schedule.trim(), { timezone, paused: true }), after);
}

/** Like {@link nextSlot}, but a schedule that never fires is an error. @throws ServiceError `validation.failed` */
export function firstSlot(schedule: Schedule, after: number): number {
  const { timezone } = schedule;
  // Node 22 and later versions accept an offset such as `+14:00`, and Node 20 does not.
  if (timezone !== null && /^[+-]/.test(timezone)) throw noTimezone(timezone);
  const slot = nextSlot(schedule, after);
  if (slot === null) throw invalidField("schedule", "names a time that never comes");
  return slot;
}

/**
 * The first `count` slots of a schedule after `after`, without those after `end`. All times are epoch milliseconds; `end` null: no end.
 * @throws ServiceError `validation.failed`, as {@link firstSlot}
 */
export function nextSlots(
  schedule: Schedule,
  { after, end, count }: { readonly after: number; readonly end: number | null; readonly count: number },
): readonly number[] {
  const slots: number[] = [];
  let slot: number | null = firstSlot(schedule, after);
  while (slot !== null && (end === null || slot <= end)) {
    if (slots.push(slot) === count) break;
    slot = nextSlot(schedule, slot);
  }
  return slots;
}

/** Says which field of a schedule is wrong; undefined if each would be valid in another schedule. */
function faultIn(fields: readonly string[]): string | undefined {
  const wrong = FIELDS.flatMap(([name, values], index) => {
    const text = fields[index] ?? "";
    const alone = FIELDS.map((_, i) => (i === index ? text : "*")).join(" ");
    if (isPattern(alone)) return [];
    const shown = JSON.stringify(text.slice(0, 100));
    return [
      `the ${name} is wrong: ${shown}. It takes ${values}; lists such as 1,3, ranges such as 1-3, steps such as */2, or * for all`,
    ];
  });
  return wrong[0];
}

function isPattern(pattern: string): boolean {
  try {
    return new Cron(pattern, { timezone: "UTC", paused: true }) instanceof Cron;
  } catch {
    return false;
  }
}

const noTimezone = (name: string) =>
  invalidField(
    "timezone",
    `"${name.slice(0, 100)}" is no IANA time zone, such as Europe/Berlin or Etc/GMT-14`,
  );

function slotOf(cron: Cron, after: number): number | null {
  return cron.nextRun(new Date(after))?.getTime() ?? null;
}

function isTimezone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).format(0) !== "";
  } catch {
    return false;
  }
}

const messageOf = (cause: unknown) => (cause instanceof Error ? cause.message : String(cause)).slice(0, 200);
