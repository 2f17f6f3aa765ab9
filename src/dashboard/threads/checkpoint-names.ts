import type { StateSummary } from "../api/records.ts";
import { replayOriginOf } from "../run/timeline-rows.ts";

/** Which checkpoint of a thread a state is, for the user. */
interface CheckpointName {
  /** Such as `after superstep 2`, with the number that the page of the run shows, or `update`. */
  readonly text: string;
  /** The API's number of the superstep after which the checkpoint was made; null if no superstep made it. */
  readonly step: number | null;
}

const checkpointIdOf = (state: Pick<StateSummary, "checkpoint"> | undefined): string =>
  state?.checkpoint?.checkpoint_id ?? "";

/** The API's step number, which counts all runs and state updates of a thread. */
export const apiStepText = ({ metadata }: StateSummary): string =>
  `API step ${String(metadata["step"])} (${String(metadata["source"])})`;

/**
 * Returns a function that names the states of a thread. `states`: those of its history that were read. The API counts
 * the steps of all runs; the names count those of a run, as the run's page does. A run whose beginning was not read has
 * the API's numbers.
 */
export function createCheckpointNaming(
  states: readonly StateSummary[],
): (state: StateSummary) => CheckpointName {
  const byId = new Map(states.map((state) => [checkpointIdOf(state), state]));
  const parentOf = ({ parent_checkpoint: parent }: StateSummary): StateSummary | undefined =>
    byId.get(parent?.checkpoint_id ?? "");
  /** Whether the state was made from an input, before the run's first superstep. */
  const isStart = (state: StateSummary): boolean => parentOf(state)?.metadata["source"] === "input";
  /** The API's number of each run's first superstep; null if the run's beginning was not read. */
  const first = new Map<unknown, number | null>();
  for (const state of states) {
    const { source, run_id, step } = state.metadata;
    if (source !== "loop" || typeof step !== "number") continue;
    const known = first.get(run_id);
    if (known === null) continue;
    if (state.parent_checkpoint !== null && parentOf(state) === undefined) first.set(run_id, null);
    else if (!isStart(state)) first.set(run_id, Math.min(known ?? step, step));
  }
  return (state) => {
    const { source, run_id, step } = state.metadata;
    if (source !== "loop" || typeof step !== "number") return { text: String(source), step: null };
    if (isStart(state)) return { text: "start of the run", step: null };
    const begin = first.get(run_id) ?? null;
    if (begin === null) return { text: apiStepText(state), step };
    const from = replayOriginOf(state)?.step ?? 1;
    return { text: `after superstep ${step - begin + from}`, step };
  };
}
