import { useState } from "preact/hooks";
import { createRunOnNewThread, createThread } from "../api/client.ts";
import type { JsonRecord } from "../api/records.ts";
import { navigate, hrefOf } from "../app/page-location.ts";
import { ApiKeyRequired } from "../api-errors.ts";
import { errorMessage, runAction, showError } from "../app/notices.ts";
import { useAssistantList } from "../components/use-assistants.ts";
import { ActionButton } from "../components/action-button.tsx";
import { NoAssistants } from "../components/no-assistants.tsx";
import { JsonField } from "../components/json-field.tsx";
import { isJsonRecord } from "../api/records.ts";
import { LeaveConfirmation } from "../components/leave-confirmation.tsx";
import { loadRunDraft, newThreadDraftKey, saveRunDraft } from "./run-drafts.ts";
import { RunForm } from "./run-form.tsx";
import { draftAfterSending } from "./run-input-fields.tsx";

const NO_VALUES: JsonRecord = {};

/** The page with the form that creates a thread together with its first run. */
export function NewThreadPage({ graph }: { readonly graph: string | null }) {
  const { value: assistants } = useAssistantList();
  const draftKey = newThreadDraftKey(graph);
  // The metadata that the user has typed; null while the text is not a JSON object.
  const [metadata, setMetadata] = useState<JsonRecord | null>({});
  const checkedMetadata = () => {
    if (metadata === null) throw new Error("The metadata of the thread must be a JSON object.");
    return metadata;
  };
  const [error, setError] = useState<string | null>(null);
  const start = async (request: JsonRecord) => {
    setError(null);
    try {
      const { thread_id } = await createRunOnNewThread(checkedMetadata(), request);
      // The draft is cleared here, because the page is left before its form could do so.
      saveRunDraft(draftKey, draftAfterSending(loadRunDraft(draftKey)));
      navigate(["threads", thread_id]);
      return true;
    } catch (cause) {
      if (cause instanceof ApiKeyRequired) showError(cause);
      setError(errorMessage(cause));
      return false;
    }
  };
  const empty = () =>
    runAction(async () => {
      const { thread_id } = await createThread(checkedMetadata());
      navigate(["threads", thread_id]);
    });
  const isMetadataEdited = metadata === null || Object.keys(metadata).length > 0;
  return (
    <article class="page new">
      <LeaveConfirmation isEdited={isMetadataEdited} text="The metadata of the thread will be lost." />
      <header class="head">
        <a class="back" href={hrefOf([])} aria-label="All threads">
          ←
        </a>
        <div class="which">
          <h2>New thread</h2>
          <p class="dim">Choose an assistant and enter its input.</p>
        </div>
      </header>
      <div class="pad">
        <div class="card">
          {assistants?.length === 0 && graph === null ? (
            <NoAssistants />
          ) : (
            <RunForm
              assistants={assistants ?? []}
              initial={graph ?? undefined}
              key={draftKey}
              thread={null}
              values={NO_VALUES}
              draftKey={draftKey}
              isBusy={false}
              submit="Start"
              onChoose={() => setError(null)}
              onRun={start}
            />
          )}
          {error !== null && (
            <p class="hint bad" role="alert">
              {error}
            </p>
          )}
        </div>
        <details class="more">
          <summary>Metadata of the thread</summary>
          <JsonField
            id="metadata"
            label="Metadata, as JSON"
            value={undefined}
            placeholder={'{"title": "a name for the list"}'}
            rows={2}
            isStrict
            onChange={(value) => setMetadata(isJsonRecord(value) ? value : value === undefined ? {} : null)}
            onWrong={(why) => {
              if (why !== null) setMetadata(null);
            }}
          />
        </details>
        <ActionButton class="quiet link" onAct={empty}>
          Create empty thread
        </ActionButton>
      </div>
    </article>
  );
}
