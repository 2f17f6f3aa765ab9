import { now } from "../app/clock.ts";
import type { Task } from "../live/trace.ts";
import { formatDuration } from "../components/duration.ts";
import { formatCost, formatCount, type ModelTotals, type CallTotals } from "./run-calls.ts";

interface SumsProps {
  readonly totals: CallTotals;
  readonly path: ReadonlySet<Task>;
  /** The time when the run began to wait for a person, in epoch milliseconds; null if it does not wait. */
  readonly askedAt: number | null;
}

/** The totals of a run in one line, and those of each model if there are several. */
export function RunSums({ totals, path, askedAt }: SumsProps) {
  const { calls, toolCalls, models, retries } = totals;
  const parts = [
    ...(calls > 0 ? [counted(calls, "model call"), ...usageOf(totals)] : []),
    ...(toolCalls > 0 ? [counted(toolCalls, "tool call")] : []),
    ...(retries > 0 ? [counted(retries, "retry", "retries")] : []),
    ...(askedAt === null
      ? []
      : [`waiting for people for ${formatDuration(Math.max(0, now.value - askedAt))}`]),
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
          <span class="path-sign" aria-hidden="true" /> Slowest path: only faster tasks on it make the run
          faster
        </p>
      )}
    </>
  );
}

const counted = (count: number, one: string, many = `${one}s`): string =>
  `${formatCount(count)} ${count === 1 ? one : many}`;

const usageOf = ({ tokensIn, tokensOut, cost }: Omit<ModelTotals, "model">): readonly string[] => [
  ...(tokensIn + tokensOut > 0 ? [`${formatCount(tokensIn)} tokens in, ${formatCount(tokensOut)} out`] : []),
  ...(cost === null ? [] : [formatCost(cost)]),
];
