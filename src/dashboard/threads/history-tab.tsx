import { useState } from "preact/hooks";
import type { ThreadSubscription } from "../live/thread-subscription.ts";
import type { StateSummary, ThreadState } from "../api/records.ts";
import { getStateHistoryWithoutValues, getStateAt } from "../api/client.ts";
import { replaceQuery, currentLocation, threadHref } from "../app/page-location.ts";
import { EmptyState, ErrorAlert, Loading } from "../components/empty-state.tsx";
import { useResource } from "../components/use-resource.ts";
import { assistantIdOf, CheckpointView } from "./checkpoint-view.tsx";
import { StateEditor } from "./state-editor.tsx";

/** The largest number of states that are listed. */
const MAX_CHECKPOINTS = 200;

/** The stored states of a thread ("time travel"). */
export function HistoryTab({ watch }: { readonly watch: ThreadSubscription }) {
  // The dialog is outside the list, which selects another state when the thread gets a newer one.
  const [edited, setEdited] = useState<ThreadState | null>(null);
  return (
    <>
      <StateList watch={watch} onEdit={setEdited} />
      {edited !== null && (
        <StateEditor
          watch={watch}
          assistant={assistantIdOf(edited, watch)}
          state={edited}
          onStored={() => {
            watch.refresh();
            replaceQuery({ at: null });
          }}
          onClose={() => setEdited(null)}
        />
      )}
    </>
  );
}

interface ListProps {
  readonly watch: ThreadSubscription;
  readonly onEdit: (state: ThreadState) => void;
}

function StateList({ watch, onEdit }: ListProps) {
  const newest = watch.state.value?.checkpoint?.checkpoint_id ?? "";
  const { value, error, reload } = useResource(
    () => getStateHistoryWithoutValues(watch.id, { limit: MAX_CHECKPOINTS }),
    [watch.id, newest],
  );
  const wanted = currentLocation.value.query.get("at");
  const isWithin = (value ?? []).some((state) => idOf(state) === wanted);
  const older = useResource(
    async () => (wanted === null || isWithin ? null : getStateAt(watch.id, wanted).catch(() => null)),
    [watch.id, wanted, isWithin],
  );
  if (error !== null) return <ErrorAlert text={error} onRetry={reload} />;
  // Waits for the latest state, which the page reads anyway. Otherwise, {@link CheckpointView} would read it again.
  if (value === undefined || watch.state.value === null) return <Loading isPadded />;
  const all = [...(older.value === null || isWithin ? [] : [older.value]), ...value.toReversed()].filter(
    (state) => state !== undefined,
  );
  if (all.length === 0)
    return (
      <EmptyState title="No checkpoints yet">
        <a href={threadHref(watch.id)}>Start a run</a>
      </EmptyState>
    );
  const branches = branchesOf(all);
  const branch = branches.find((states) => states.some((state) => idOf(state) === wanted)) ?? branches[0];
  const states = branch ?? all;
  const found = states.findIndex((state) => idOf(state) === wanted);
  const at = found < 0 ? states.length - 1 : found;
  const show = (index: number, of = states) =>
    replaceQuery({
      at:
        of === branches[0] && index === of.length - 1 ? null : (of[index]?.checkpoint?.checkpoint_id ?? null),
    });
  const state = states[at];
  return (
    <div class="pad history">
      <div class="travel">
        <button type="button" aria-label="Earlier" disabled={at === 0} onClick={() => show(at - 1)}>
          ←
        </button>
        <input
          type="range"
          aria-label="Checkpoint"
          aria-valuetext={`checkpoint ${at + 1} of ${states.length}`}
          min={0}
          max={states.length - 1}
          value={at}
          onInput={({ currentTarget }) => show(currentTarget.valueAsNumber)}
        />
        <button
          type="button"
          aria-label="Later"
          disabled={at === states.length - 1}
          onClick={() => show(at + 1)}
        >
          →
        </button>
        <span class="dim">
          {at + 1} of {value.length === MAX_CHECKPOINTS && "the latest "}
          {states.length}
        </span>
      </div>
      {branches.length > 1 && (
        <label class="inline branch">
          <span class="dim">Branch</span>
          <select
            value={branches.indexOf(states)}
            onChange={({ currentTarget: { value: index } }) => {
              const other = branches[Number(index)];
              if (other !== undefined) show(other.length - 1, other);
            }}
          >
            {branches.map((one, i) => (
              <option key={i} value={i} selected={one === states}>
                {i === 0 ? "the newest" : `until ${timeOf(one.at(-1))}`}
              </option>
            ))}
          </select>
        </label>
      )}
      {state !== undefined && (
        <CheckpointView
          key={state.checkpoint?.checkpoint_id}
          watch={watch}
          state={state}
          states={all}
          onEdit={onEdit}
        />
      )}
    </div>
  );
}

const idOf = (state: StateSummary): string => state.checkpoint?.checkpoint_id ?? "";

const timeOf = (state: StateSummary | undefined): string =>
  new Date(state?.created_at ?? "").toLocaleTimeString();

/**
 * Returns the branches of a history, the branch with the newest state first. Each is a list from the oldest state to
 * one without a successor. `states`: oldest first.
 */
export function branchesOf(states: readonly StateSummary[]): readonly (readonly StateSummary[])[] {
  const byId = new Map(states.map((state) => [state.checkpoint?.checkpoint_id ?? "", state]));
  const parentOf = (state: StateSummary) => byId.get(state.parent_checkpoint?.checkpoint_id ?? "");
  const parents = new Set(states.map(parentOf));
  const last = states.filter((state) => !parents.has(state)).toReversed();
  return last.map((leaf) => {
    const branch = [leaf];
    for (let state = parentOf(leaf); state !== undefined; state = parentOf(state)) branch.unshift(state);
    return branch;
  });
}
