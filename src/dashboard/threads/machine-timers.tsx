import { isJsonRecord, type JsonRecord } from "../api/records.ts";
import { nowTruncatedToSeconds } from "../app/clock.ts";
import { formatDuration } from "../components/duration.ts";

export interface RunningTimer {
  readonly id: string;
  /** When the timer fires, in epoch milliseconds. */
  readonly due: number;
  readonly event: string;
}

/** Parses the `timers` of a machine's snapshot, and sorts them by when they fire. */
export function readMachineTimers(timers: unknown): readonly RunningTimer[] {
  if (!Array.isArray(timers)) return [];
  const read = timers.flatMap((timer: unknown): RunningTimer[] => {
    if (!isJsonRecord(timer) || !isJsonRecord(timer["event"])) return [];
    const { id, due, event } = timer;
    return typeof id === "string" && typeof due === "number"
      ? [{ id, due, event: String(event["type"]) }]
      : [];
  });
  return read.toSorted((a, b) => a.due - b.due);
}

/**
 * Returns the delay and the state of an `after` transition; null for any other event. The event's type is
 * `xstate.after.DELAY.ID`, where ID is the id of the state: the machine's id and the names of the states, separated by
 * dots.
 */
function afterTransitionOf(event: string): { readonly delay: string; readonly state: string } | null {
  const [, delay, id] = /^xstate\.after\.([^.]+)\.(.+)$/.exec(event) ?? [];
  return delay === undefined || id === undefined ? null : { delay, state: id.replace(/^[^.]+\./, "") };
}

/** Returns a text that says what a timer does. */
function timerLabel(event: string) {
  const after = afterTransitionOf(event);
  if (after === null)
    return (
      <>
        sends <code>{event}</code>
      </>
    );
  const { delay, state } = after;
  return (
    <>
      <strong>{state}</strong> times out after {/^\d+$/.test(delay) ? formatDuration(Number(delay)) : delay}
    </>
  );
}

interface TimeToFireProps {
  readonly due: number;
  /** The word before the time, such as `due`; empty for none. */
  readonly word: string;
}

function TimeToFire({ due, word }: TimeToFireProps) {
  const now = nowTruncatedToSeconds.value;
  return (
    <time dateTime={new Date(due).toISOString()} title={new Date(due).toLocaleString()}>
      {`${word} ${due > now ? `in ${formatDuration(due - now)}` : "now"}`.trim()}
    </time>
  );
}

/** Says what the next timer of a waiting machine does, and when. */
export function NextMachineTimer({ timer: { due, event } }: { readonly timer: RunningTimer }) {
  const after = afterTransitionOf(event);
  return (
    <>
      {after === null ? `sends ${event}` : `${after.state} times out`} <TimeToFire due={due} word="" />
    </>
  );
}

/** The running timers of a machine, each with the time until it fires. */
export function MachineTimers({ values }: { readonly values: JsonRecord }) {
  const { __snapshot__: snapshot } = values;
  const timers = isJsonRecord(snapshot) ? readMachineTimers(snapshot["timers"]) : [];
  if (timers.length === 0) return null;
  return (
    <section class="card state" aria-label="Timers">
      <h3>Timers</h3>
      <ul>
        {timers.map(({ id, due, event }) => (
          <li key={id}>
            {timerLabel(event)}; <TimeToFire due={due} word="due" />
          </li>
        ))}
      </ul>
    </section>
  );
}
