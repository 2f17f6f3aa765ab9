import type { SchedulePreview } from "./schedule-preview.ts";

/** The name of the browser's time zone, such as `Europe/Berlin`. */
export const BROWSER_TIME_ZONE: string = Intl.DateTimeFormat().resolvedOptions().timeZone;

interface NextRunsProps {
  /** Undefined until the server has answered for the entered schedule. */
  readonly preview: SchedulePreview | undefined;
  readonly error: string | null;
  /** The time zone of the cron. */
  readonly timezone: string;
  readonly hasEnd: boolean;
}

/** The next times of a schedule, in the time zone of the cron and in that of the browser. */
export function NextRuns({ preview, error, timezone, hasEnd }: NextRunsProps) {
  if (error !== null) return <p class="hint bad">The next runs cannot be shown: {error}</p>;
  if (preview === undefined) return <p class="hint">Next runs: …</p>;
  if (preview.faults.length > 0) return null;
  if (preview.dates.length === 0)
    return hasEnd ? <p class="hint bad">There is no run before the end time.</p> : null;
  const inCronZone = timeFormat(timezone);
  const inBrowserZone = timezone === BROWSER_TIME_ZONE ? null : timeFormat(BROWSER_TIME_ZONE);
  return (
    <table class="next-runs">
      <thead>
        <tr>
          {inCronZone !== null && (
            <th scope="col">
              Next runs in {timezone}
              {inBrowserZone === null && " (your time zone)"}
            </th>
          )}
          {inBrowserZone !== null && <th scope="col">Your time ({BROWSER_TIME_ZONE})</th>}
        </tr>
      </thead>
      <tbody>
        {preview.dates.map((date) => (
          <tr key={date}>
            {[inCronZone, inBrowserZone].map(
              (format) =>
                format !== null && (
                  <td key={format.resolvedOptions().timeZone}>
                    <time dateTime={date}>{format.format(new Date(date))}</time>
                  </td>
                ),
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Returns a formatter of times in a time zone; null if the browser does not know the time zone. */
function timeFormat(timeZone: string): Intl.DateTimeFormat | null {
  try {
    return new Intl.DateTimeFormat(undefined, {
      timeZone,
      weekday: "short",
      year: "numeric",
      month: "short",
      day: "numeric",
      hour: "numeric",
      minute: "2-digit",
      timeZoneName: "short",
    });
  } catch {
    return null;
  }
}
