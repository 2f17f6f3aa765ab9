import { now } from "../app/clock.ts";
import type { PausedRun } from "../live/paused-run.ts";
import type { Task } from "../live/trace.ts";
import { formatDuration } from "../components/duration.ts";
import { formatCost, formatCount, type ModelTotals, type CallTotals } from "./run-calls.ts";

interface RunTotalsProps {
  readonly totals: CallTotals;
  readonly path: ReadonlySet<Task>;
  /** The question or breakpoint at which the thread waits because of this run; null if there is none. */
  readonly waiting: PausedRun | null;
  /** Since when the thread waits, in epoch milliseconds; null if it is not known. */
  readonly since: number | null;
}

/** The totals of a run in one line and, if it used several models, those of each model. */
export function RunTotalsView({ totals, path, waiting, since }: RunTotalsProps) {
  const { calls, toolCalls, models, retries } = totals;
  const parts = [
    ...(calls > 0 ? [counted(calls, "model call"), ...usageOf(totals)] : []),
    ...(toolCalls > 0 ? [counted(toolCalls, "tool call")] : []),
    ...(retries > 0 ? [counted(retries, "retry", "retries")] : []),
    ...(waiting === null || since === null
      ? []
      : [waitText(waiting, formatDuration(Math.max(0, now.value - since)))]),
  ];
  return (
    <>
      {parts.length > 0 && <p class="findings sums">{parts.join(" · ")}</p>}
      {models.length > 1 && (
        <ul class="dim findings models" aria-label="By model">
          {models.map((model) => (
            <li key={model.model}>
              {model.model}: {[counted(model.calls, "call"), ...usageOf(model)].join(" · ")}
            </li>
          ))}
        </ul>
      )}
      {path.size > 0 && (
        <p class="dim findings">
          <span class="path-sign" aria-hidden="true" /> Critical path: only speeding up these tasks shortens
          the run
        </p>
      )}
    </>
  );
}

const waitText = ({ questions }: PausedRun, duration: string): string =>
  questions.length > 0 ? `waiting ${duration} for an answer` : `paused for ${duration}`;

/** Formats the number of a task's retries. */
export const retriesText = ({ tries }: Task): string => counted(tries - 1, "retry", "retries");

const counted = (count: number, one: string, many = `${one}s`): string =>
  `${formatCount(count)} ${count === 1 ? one : many}`;

const usageOf = ({ tokensIn, tokensOut, cost }: Omit<ModelTotals, "model">): readonly string[] => [
  ...(tokensIn + tokensOut > 0 ? [`${formatCount(tokensIn)} tokens in, ${formatCount(tokensOut)} out`] : []),
  ...(cost === null ? [] : [formatCost(cost)]),
];
