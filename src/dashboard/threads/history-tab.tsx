import type { ThreadSubscription } from "../live/thread-subscription.ts";
import { getHistory } from "../api/client.ts";
import { replaceQuery, currentLocation } from "../app/page-location.ts";
import { EmptyState, LoadFailure } from "../components/empty-state.tsx";
import { useResource } from "../components/use-resource.ts";
import { CheckpointView } from "./checkpoint-view.tsx";

/** The largest number of states read. */
const MAX_CHECKPOINTS = 200;

/** The states of a thread over time (time travel). */
export function HistoryTab({ watch }: { readonly watch: ThreadSubscription }) {
  const newest = watch.state.value?.checkpoint?.checkpoint_id ?? "";
  const { value, error, reload } = useResource(
    () => getHistory(watch.id, { limit: MAX_CHECKPOINTS }),
    [watch.id, newest],
  );
  if (error !== null) return <LoadFailure text={error} onRetry={reload} />;
  if (value === undefined)
    return (
      <p class="dim pad" aria-busy="true">
        Reading…
      </p>
    );
  const states = value.toReversed();
  if (states.length === 0) return <EmptyState title="The thread has no state yet." />;
  const wanted = currentLocation.value.query.get("at");
  const found = states.findIndex(({ checkpoint }) => checkpoint?.checkpoint_id === wanted);
  const at = found < 0 ? states.length - 1 : found;
  const show = (index: number) =>
    replaceQuery({
      at: index === states.length - 1 ? null : (states[index]?.checkpoint?.checkpoint_id ?? null),
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
          aria-label="State over time"
          aria-valuetext={`state ${at + 1} of ${states.length}`}
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
          {at + 1} of {states.length}
          {value.length === MAX_CHECKPOINTS && ", the latest"}
        </span>
      </div>
      {state !== undefined && (
        <CheckpointView key={state.checkpoint?.checkpoint_id} watch={watch} state={state} states={states} />
      )}
    </div>
  );
}
