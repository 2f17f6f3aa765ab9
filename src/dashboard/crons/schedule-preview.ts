import { useEffect } from "preact/hooks";
import { RequestError, type RequestFieldError } from "../api-errors.ts";
import { type CronTimes, previewCronTimes } from "../api/client.ts";
import { useDebouncedValue } from "../components/use-debounced-value.ts";
import { useResource } from "../components/use-resource.ts";

/** The next times of a schedule, or what is wrong with it. */
export interface SchedulePreview {
  /** Also empty if no schedule is entered, or if it has faults. */
  readonly dates: readonly string[];
  readonly faults: readonly RequestFieldError[];
}

/** Milliseconds without a key press after which the server is asked for the times of what was typed. */
const TYPING_PAUSE_MS = 300;
/** Milliseconds between two reads of the times, which change as time passes. */
const POLL_MS = 5_000;

/**
 * Asks the server for the next times of a schedule: only the server knows its clock, and which schedules it accepts.
 * `preview` is undefined until the server has answered for these `times`.
 */
export function useSchedulePreview(times: CronTimes): {
  readonly preview: SchedulePreview | undefined;
  /** Why the times could not be read; null if there was no such error. */
  readonly error: string | null;
} {
  const key = JSON.stringify(times);
  const asked = useDebouncedValue(key, TYPING_PAUSE_MS);
  const read = useResource(() => readPreview(asked), [asked]);
  useEffect(() => {
    const poll = setInterval(() => {
      if (!document.hidden) read.poll();
    }, POLL_MS);
    return () => clearInterval(poll);
  }, []);
  return {
    preview: read.value?.key === key ? read.value : undefined,
    error: asked === key ? read.error : null,
  };
}

async function readPreview(key: string): Promise<SchedulePreview & { readonly key: string }> {
  const times = JSON.parse(key) as CronTimes;
  if (times.schedule === "") return { key, dates: [], faults: [] };
  try {
    return { key, dates: await previewCronTimes(times), faults: [] };
  } catch (cause) {
    if (!(cause instanceof RequestError) || cause.fields.length === 0) throw cause;
    return { key, dates: [], faults: cause.fields };
  }
}
