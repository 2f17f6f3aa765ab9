import type { Run, SlowestNode } from "../api/records.ts";
import { runHref } from "../app/page-location.ts";
import { formatDuration } from "../components/duration.ts";

interface SlowestNodeProps {
  readonly run: Pick<Run, "thread_id" | "run_id"> & { readonly slowest_node?: SlowestNode | null };
  /** The text before the name of the node. */
  readonly label?: string;
}

/** The slowest node of a run and its duration, as a link to its task in the timeline. Nothing if it is not known. */
export function SlowestNodeLink({ run, label = "" }: SlowestNodeProps) {
  const { thread_id, run_id, slowest_node: slowest = null } = run;
  if (slowest === null) return null;
  return (
    <>
      {label}
      <a href={runHref(thread_id, run_id, { task: slowest.task_id })}>{slowest.name}</a>,{" "}
      {/* Non-breaking spaces keep the numbers and their units on one line. */}
      {formatDuration(slowest.duration_ms).replaceAll(" ", "\u00A0")}
    </>
  );
}
