import { useId } from "preact/hooks";
import { getThread, listThreads } from "../api/client.ts";
import type { Cron } from "../api/records.ts";
import { isUuid, threadHref } from "../app/page-location.ts";
import { idSuffix } from "../components/one-line-text.ts";
import { useResource } from "../components/use-resource.ts";
import { threadTitle } from "../threads/thread-title.ts";

/** The number of threads that the field suggests. */
const SUGGESTED_THREADS = 500;

interface ThreadChoiceProps {
  /** The id of the thread, as typed; null: a new thread for each run. */
  readonly thread: string | null;
  /** Whether the user has tried to send the form, so that a missing thread is reported. */
  readonly isSubmitted: boolean;
  readonly onChange: (thread: string | null) => void;
}

/** Returns what is wrong with the thread that was entered; null if nothing is. */
export const threadIdFaultOf = (thread: string | null): string | null =>
  thread === null || isUuid(thread.trim()) ? null : "must be the ID of a thread";

/** The choice between a new thread for each run and one existing thread. */
export function ThreadChoice({ thread, isSubmitted, onChange }: ThreadChoiceProps) {
  const id = useId();
  return (
    <fieldset class="fields">
      <legend>Thread</legend>
      <div class="bar">
        {(
          [
            ["A new thread for each run", null],
            ["An existing thread", ""],
          ] as const
        ).map(([label, value]) => (
          <label class="inline" key={label}>
            <input
              type="radio"
              name={id}
              checked={(thread === null) === (value === null)}
              onChange={() => onChange(value)}
            />{" "}
            {label}
          </label>
        ))}
      </div>
      {thread !== null && <ThreadField thread={thread} isSubmitted={isSubmitted} onChange={onChange} />}
    </fieldset>
  );
}

function ThreadField({ thread, isSubmitted, onChange }: ThreadChoiceProps & { readonly thread: string }) {
  const id = useId();
  const { value: suggested } = useResource(() => listThreads({}, "latest", 0, SUGGESTED_THREADS), []);
  const given = isUuid(thread.trim()) ? thread.trim().toLowerCase() : null;
  const found = useResource(async () => (given === null ? null : getThread(given)), [given]);
  const wrong = given === null ? (isSubmitted ? threadIdFaultOf(thread) : null) : found.error;
  const known = found.value?.thread_id === given ? found.value : null;
  return (
    <div class="field">
      <label for={id}>
        ID of the thread<span class="dim"> (required)</span>
      </label>
      <input
        id={id}
        list={`${id}-list`}
        autoComplete="off"
        spellcheck={false}
        value={thread}
        placeholder="type a part of its title, or paste its ID"
        aria-required
        aria-invalid={wrong !== null}
        aria-describedby={`${id}-hint`}
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
      />
      <datalist id={`${id}-list`}>
        {suggested?.rows.map((row) => (
          <option key={row.thread_id} value={row.thread_id}>
            {threadTitle(row)}
          </option>
        ))}
      </datalist>
      <p class={wrong === null ? "hint" : "hint bad"} id={`${id}-hint`} role="status">
        {wrong ?? (known !== null && known !== undefined ? threadTitle(known) : "")}
      </p>
    </div>
  );
}

/** Shows the thread of a stored cron, without a field: the API cannot change the thread. */
export function CronThreadLink({ thread_id: thread }: Pick<Cron, "thread_id">) {
  if (thread === null) return <>new thread per run</>;
  return <a href={threadHref(thread)}>thread …{idSuffix(thread)}</a>;
}
