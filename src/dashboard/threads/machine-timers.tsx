import { isJsonRecord, type JsonRecord } from "../api/records.ts";
import { nowTruncatedToSeconds } from "../app/clock.ts";
import { formatDuration } from "../components/duration.ts";

interface Timer {
  readonly id: string;
  /** Epoch milliseconds. */
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
            <code>{event.replace(/^xstate\.after\./, "after ")}</code>{" "}
            <time dateTime={new Date(due).toISOString()} title={new Date(due).toLocaleString()}>
              {due > nowTruncatedToSeconds.value
                ? `in ${formatDuration(due - nowTruncatedToSeconds.value)}`
                : "is due"}
            </time>
          </li>
        ))}
      </ul>
    </section>
  );
}
