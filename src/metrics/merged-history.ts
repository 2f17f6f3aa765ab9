import type { MetricsHistoryRecord } from "../ports/shard-metrics.ts";
import {
  ENTRY_INTERVAL_MS,
  HISTORY_FIGURES,
  type HistoryFigure,
  MAX_HISTORY_ENTRIES,
} from "./metrics-history.ts";

/**
 * Figures whose value for the server is the highest value of any shard; all others are added up. For a percentile of waits, this is an
 * upper bound: if half of each shard's runs waited at most t seconds, so did half of all runs. Maxima and ratios of event loops cannot be
 * added up.
 */
const HIGHEST: ReadonlySet<HistoryFigure> = new Set([
  "run_wait_p50_seconds",
  "run_wait_p99_seconds",
  "event_loop_lag_max_seconds",
  "event_loop_busy_ratio",
]);

const NAMES = Object.keys(HISTORY_FIGURES) as readonly HistoryFigure[];

/** The history of a server with several processes. `shards_counted` has, for each entry, the number of shards whose figures are in it. */
export type MergedHistory = MetricsHistoryRecord<HistoryFigure | "shards_counted">;

/** The history of one shard. `positions` gives the index of each entry by its time slot. */
interface SlottedHistory {
  readonly record: MetricsHistoryRecord;
  readonly positions: ReadonlyMap<number, number>;
  /** The slot of the newest entry. */
  readonly newest: number;
}

/**
 * Merges the histories of all shards into one. Processes take their entries at different moments, so time is divided into slots of
 * {@link ENTRY_INTERVAL_MS}, and the entries in one slot are merged. The clocks of all nodes MUST agree to within a few seconds, or entries
 * of different times are merged.
 */
export function mergeHistories(records: readonly MetricsHistoryRecord[]): MergedHistory {
  const histories = records.map(slotted).filter((history) => history !== undefined);
  const slots = slotsOf(histories);
  const entries = slots.map((slot) =>
    histories.flatMap(({ record, positions }) => {
      const position = positions.get(slot);
      return position === undefined ? [] : [{ record, position }];
    }),
  );
  const figures = NAMES.map((name) => [
    name,
    entries.map((entry) =>
      merged(
        name,
        entry.flatMap(({ record, position }) => record.figures[name]?.[position] ?? []),
      ),
    ),
  ]);
  return {
    interval_seconds: ENTRY_INTERVAL_MS / 1_000,
    // All times have the same format, so comparing them as text compares the times.
    times: entries.map((entry) =>
      entry.reduce((latest, { record, position }) => {
        const time = record.times[position] ?? "";
        return time > latest ? time : latest;
      }, ""),
    ),
    figures: {
      ...(Object.fromEntries(figures) as { [name in HistoryFigure]: (number | null)[] }),
      shards_counted: entries.map((entry) => entry.length),
    },
  };
}

/** Assigns the entries of a history to slots; undefined if the history has no entries. */
function slotted(record: MetricsHistoryRecord): SlottedHistory | undefined {
  const times = record.times.map((time) => Date.parse(time));
  const last = times.at(-1);
  if (last === undefined) return undefined;
  const newest = Math.floor(last / ENTRY_INTERVAL_MS);
  // Timers fire some milliseconds late, sometimes beyond the end of a slot. Slots are counted back from the newest entry, so that none is
  // skipped or taken twice.
  const positions = times.map(
    (time, position) => [newest - Math.round((last - time) / ENTRY_INTERVAL_MS), position] as const,
  );
  return { record, positions: new Map(positions), newest };
}

/**
 * The slots of the result, in ascending order. A slot that some shards have not reached yet is left out, because its sums would be too low.
 */
function slotsOf(histories: readonly SlottedHistory[]): readonly number[] {
  const newest = Math.max(...histories.map((history) => history.newest));
  // A shard that is more than one slot behind is not waited for: the event loop of its process is blocked.
  const end = Math.min(...histories.map((history) => history.newest).filter((slot) => slot >= newest - 1));
  const all = new Set(histories.flatMap(({ positions }) => [...positions.keys()]));
  return [...all]
    .filter((slot) => slot <= end)
    .toSorted((a, b) => a - b)
    .slice(-MAX_HISTORY_ENTRIES);
}

/** Merges the values of one figure in one slot, one value for each shard that knows the figure. Null if no shard knows it. */
function merged(name: HistoryFigure, values: readonly number[]): number | null {
  if (values.length === 0) return null;
  if (HIGHEST.has(name)) return Math.max(...values);
  return values.reduce((sum, value) => sum + value, 0);
}
