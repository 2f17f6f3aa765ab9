import { useMemo, useState } from "preact/hooks";
import { createRun, getStateAt } from "../api/client.ts";
import type { StateSummary, ThreadState } from "../api/records.ts";
import { replaceQuery, runHref } from "../app/page-location.ts";
import { isNotFound } from "../api-errors.ts";
import { runAction, showNotice } from "../app/notices.ts";
import { userNameIn } from "../live/answer-requests.ts";
import type { ThreadSubscription } from "../live/thread-subscription.ts";
import { ActionButton } from "../components/action-button.tsx";
import { CopyButton } from "../components/copy-button.tsx";
import { JsonDiff } from "../components/json-diff.tsx";
import { JsonTree } from "../components/json-tree.tsx";
import { ErrorAlert, Loading } from "../components/empty-state.tsx";
import { idSuffix } from "../components/one-line-text.ts";
import { useResource } from "../components/use-resource.ts";
import { apiStepText, createCheckpointNaming } from "./checkpoint-names.ts";

interface CheckpointViewProps {
  readonly watch: ThreadSubscription;
  readonly state: StateSummary;
  /** The states of the thread's history that were read, oldest first. */
  readonly states: readonly StateSummary[];
  /** Called when the user clicks *Edit state*. */
  readonly onEdit: (state: ThreadState) => void;
}

const idOf = (state: StateSummary | undefined): string => state?.checkpoint?.checkpoint_id ?? "";

/** Returns the id of the assistant whose run created a state; otherwise that of the thread's latest assistant. */
export function assistantIdOf({ metadata }: StateSummary, watch: ThreadSubscription): string | undefined {
  const names = [metadata["assistant_id"], watch.record.value?.metadata["assistant_id"]];
  return names.find((one) => typeof one === "string");
}

/** A past state: what changed since another state, its values, and buttons to continue from it. */
export function CheckpointView({ watch, state, states, onEdit }: CheckpointViewProps) {
  const [against, setAgainst] = useState(state.parent_checkpoint?.checkpoint_id ?? "");
  const { metadata, next, created_at } = state;
  const nameOf = useMemo(() => createCheckpointNaming(states), [states]);
  const { text: name, step } = nameOf(state);
  // Only the states that are shown are read with their values.
  const read = async (id: string): Promise<ThreadState> => {
    const latest = watch.state.peek();
    const isWhole = latest !== null && Object.keys(latest.list_lengths).length === 0;
    return isWhole && idOf(latest) === id ? latest : getStateAt(watch.id, id);
  };
  const whole = useResource(() => read(idOf(state)), [idOf(state)]);
  const before = useResource(
    async () =>
      against === ""
        ? null
        : read(against).catch((cause: unknown) => {
            // The state to compare with may have been pruned.
            if (isNotFound(cause)) return null;
            throw cause;
          }),
    [against],
  );
  const run = metadata["run_id"];
  const user = userNameIn(metadata);
  const assistant = assistantIdOf(state, watch);
  const fork = () =>
    runAction(async () => {
      await createRun(watch.id, {
        assistant_id: assistant,
        input: null,
        checkpoint_id: idOf(state),
      });
      showNotice("New run started from this state.");
      watch.refresh();
      replaceQuery({ tab: null, at: null });
    });
  return (
    <article class="moment">
      <div class="bar">
        <h3 class="space" title={apiStepText(state)}>
          Checkpoint, {name}
          {next.length > 0 && <span class="dim"> → {next.join(", ")}</span>}
        </h3>
        {next.length > 0 && assistant !== undefined && (
          <ActionButton onAct={fork} title="Starts a new branch from this state">
            Run from this state
          </ActionButton>
        )}
        {whole.value !== undefined && (
          <>
            <button type="button" onClick={() => whole.value !== undefined && onEdit(whole.value)}>
              Edit state
            </button>
            <CopyButton
              text={() => JSON.stringify(whole.value?.values, null, 2)}
              label="state"
              shown="Copy"
            />
          </>
        )}
      </div>
      <p class="dim">
        {created_at !== null && <time dateTime={created_at}>{new Date(created_at).toLocaleString()}</time>}
        {typeof run === "string" ? (
          <>
            {" "}
            · <a href={runHref(watch.id, run, { step })}>run …{idSuffix(run)}</a>
            {user !== null && `, started by ${user}`}
          </>
        ) : (
          user !== null && ` · by ${user}`
        )}
        {" · "}
        <code>{idOf(state)}</code>
      </p>
      <section class="card">
        <div class="bar">
          <h4 class="space">What changed</h4>
          <label class="inline">
            <span class="dim">Compare with</span>
            <select value={against} onChange={({ currentTarget }) => setAgainst(currentTarget.value)}>
              <option value="">none</option>
              {states
                .filter((one) => one !== state)
                .map((one) => (
                  <option key={idOf(one)} value={idOf(one)} selected={idOf(one) === against}>
                    {nameOf(one).text}
                    {idOf(one) === state.parent_checkpoint?.checkpoint_id
                      ? " (previous)"
                      : ` (${states.indexOf(one) + 1})`}
                  </option>
                ))}
            </select>
          </label>
        </div>
        {before.error !== null ? (
          <ErrorAlert text={before.error} onRetry={before.reload} />
        ) : whole.value === undefined || before.value === undefined ? (
          <Loading />
        ) : (
          <JsonDiff before={before.value?.values ?? {}} after={whole.value.values} />
        )}
      </section>
      <section class="card">
        <h4>State</h4>
        {whole.error !== null ? (
          <ErrorAlert text={whole.error} onRetry={whole.reload} />
        ) : whole.value === undefined ? (
          <Loading />
        ) : (
          <JsonTree value={whole.value.values} open={2} />
        )}
      </section>
    </article>
  );
}
