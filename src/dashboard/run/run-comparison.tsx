import { useEffect, useMemo } from "preact/hooks";
import { runHref } from "../app/page-location.ts";
import { RunSubscription } from "../live/run-subscription.ts";
import { RUN_STATUS_TEXTS, TASK_STATUS_TEXTS } from "../live/status-texts.ts";
import type { Task, Trace } from "../live/trace.ts";
import { JsonDiff } from "../components/json-diff.tsx";
import { ErrorAlert, Loading } from "../components/empty-state.tsx";
import { formatDuration } from "../components/duration.ts";
import { StatusBadge } from "../components/status-badge.tsx";
import { idSuffix } from "../components/one-line-text.ts";

/**
 * Compares two runs of a thread side by side: their inputs, tasks and final states. `other`: the id of the second run.
 */
export function RunComparison({ watch, other }: { readonly watch: RunSubscription; readonly other: string }) {
  const beside = useMemo(() => new RunSubscription(watch.thread, other, false), [watch, other]);
  useEffect(() => () => beside.close(), [beside]);
  void beside.changes.count;
  const [a, b] = [watch.run.value, beside.run.value];
  if (beside.error.value !== null) return <ErrorAlert text={beside.error.value} />;
  if (a === null || b === null) return <Loading isPadded />;
  const pairs = pairsOf(watch.trace, beside.trace);
  return (
    <div class="pad compare">
      <table>
        <thead>
          <tr>
            <th>Task</th>
            {[a, b].map((run) => (
              <th key={run.run_id}>
                <a href={runHref(watch.thread, run.run_id)}>…{idSuffix(run.run_id)}</a>{" "}
                <StatusBadge of={run.status} words={RUN_STATUS_TEXTS[run.status]} small />
              </th>
            ))}
            <th>Output</th>
          </tr>
        </thead>
        <tbody>
          {pairs.map(({ name, first, second }, i) => (
            <tr key={i}>
              <td>{name}</td>
              <td>{wordsOf(first)}</td>
              <td>{wordsOf(second)}</td>
              <td>
                {first !== undefined &&
                  second !== undefined &&
                  (JSON.stringify(first.result) === JSON.stringify(second.result) ? (
                    <span class="dim">same</span>
                  ) : (
                    <strong>differs</strong>
                  ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <h3>Input</h3>
      <JsonDiff before={a.kwargs.command ?? a.kwargs.input} after={b.kwargs.command ?? b.kwargs.input} />
      <h3>Last state</h3>
      <JsonDiff before={watch.trace.values ?? {}} after={beside.trace.values ?? {}} />
    </div>
  );
}

function wordsOf(task: Task | undefined): string {
  if (task === undefined) return "–";
  return task.begunAt === null || task.endedAt === null
    ? TASK_STATUS_TEXTS[task.status]
    : `${TASK_STATUS_TEXTS[task.status]}, ${formatDuration(task.endedAt - task.begunAt)}`;
}

interface Pair {
  readonly name: string;
  readonly first: Task | undefined;
  readonly second: Task | undefined;
}

/** Pairs the n-th task of each node with the n-th task of the same node in the other run. */
function pairsOf(a: Trace, b: Trace): readonly Pair[] {
  const byName = (trace: Trace) => {
    const names = new Map<string, Task>();
    const counts = new Map<string, number>();
    for (const task of trace.tasks.values()) {
      const path = [...task.ns.split("|").map((part) => part.split(":")[0]), task.name]
        .filter((part) => part !== "")
        .join(" › ");
      const count = (counts.get(path) ?? 0) + 1;
      counts.set(path, count);
      names.set(count === 1 ? path : `${path} (${count})`, task);
    }
    return names;
  };
  const [first, then] = [byName(a), byName(b)];
  return [...new Set([...first.keys(), ...then.keys()])].map((name) => ({
    name,
    first: first.get(name),
    second: then.get(name),
  }));
}
