import { isJsonRecord, type JsonRecord } from "../api/records.ts";
import { nowTruncatedToSeconds } from "../app/clock.ts";
import { formatDuration } from "../components/duration.ts";

interface Timer {
  readonly id: string;
  /** The time when the timer fires, in epoch milliseconds. */
  readonly due: number;
  readonly event: string;
}

/** The timers that a machine has set, the next one first. */
function timersOf({ __snapshot__: snapshot }: JsonRecord): readonly Timer[] {
  const timers = isJsonRecord(snapshot) ? snapshot["timers"] : undefined;
  if (!Array.isArray(timers)) return [];
  const read = timers.flatMap((timer: unknown): Timer[] => {
    if (!isJsonRecord(timer) || !isJsonRecord(timer["event"])) return [];
    const { id, due, event } = timer;
    return typeof id === "string" && typeof due === "number"
      ? [{ id, due, event: String(event["type"]) }]
      : [];
  });
  return read.toSorted((a, b) => a.due - b.due);
}

/**
 * Says what a timer does. The event of an `after` transition is `xstate.after.`, its delay, `.` and the
 * state's id. The id begins with the machine's name, then names the state, with dots between the names.
 */
function timerLabel(event: string) {
  const [, delay, state] = /^xstate\.after\.([^.]+)\.(.+)$/.exec(event) ?? [];
  if (delay === undefined || state === undefined)
    return (
      <>
        sends <code>{event}</code>
      </>
    );
  return (
    <>
      <strong>{state.replace(/^[^.]+\./, "")}</strong> times out after{" "}
      {/^\d+$/.test(delay) ? formatDuration(Number(delay)) : delay}
    </>
  );
}

/** The timers of a machine's thread, each with the time that is left. */
export function MachineTimers({ values }: { readonly values: JsonRecord }) {
  const timers = timersOf(values);
  if (timers.length === 0) return null;
  return (
    <section class="card state" aria-label="Timers">
      <h3>Timers</h3>
      <ul>
        {timers.map(({ id, due, event }) => (
          <li key={id}>
            {timerLabel(event)};{" "}
            <time dateTime={new Date(due).toISOString()} title={new Date(due).toLocaleString()}>
              {due > nowTruncatedToSeconds.value
                ? `due in ${formatDuration(due - nowTruncatedToSeconds.value)}`
                : "due now"}
            </time>
          </li>
        ))}
      </ul>
    </section>
  );
}
