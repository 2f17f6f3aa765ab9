import { isJsonRecord, type JsonRecord } from "../api/records.ts";
import { nowTruncatedToSeconds } from "../app/clock.ts";
import { formatDuration } from "../components/duration.ts";

interface Timer {
  readonly id: string;
  /** When the timer fires, in epoch milliseconds. */
  readonly due: number;
  readonly event: string;
}

/** Returns the running timers of a machine, sorted by when they fire. */
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
 * Returns a text that says what a timer does. For an `after` transition, the event's type is `xstate.after.DELAY.ID`,
 * where ID is the id of the state: the machine's id and the names of the states, separated by dots.
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

/** The running timers of a machine, each with the time until it fires. */
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
