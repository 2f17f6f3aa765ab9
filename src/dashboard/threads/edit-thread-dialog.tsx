import { useState } from "preact/hooks";
import { getThread, updateThread } from "../api/client.ts";
import { isJsonRecord, type JsonRecord, type Thread } from "../api/records.ts";
import { showNotice } from "../app/notices.ts";
import { assertNotOverwriting } from "../components/assert-not-overwriting.ts";
import { changedMetadata } from "../components/changed-metadata.ts";
import { FormDialog } from "../components/form-dialog.tsx";
import { FormFooter } from "../components/form-footer.tsx";
import { JsonField } from "../components/json-field.tsx";
import { useSubmit } from "../components/use-submit.ts";

interface DetailsProps {
  readonly thread: Thread;
  readonly onChanged: () => void;
  readonly onClose: () => void;
}

/**
 * Returns a thread's metadata without the title, which has a field of its own, and without the members that the server
 * adds.
 */
export function ownMetadata(metadata: JsonRecord): JsonRecord {
  const { title: _, graph_id: _graph, assistant_id: _assistant, ...own } = metadata;
  return own;
}

/** A dialog with the form for a thread's title and metadata. */
export function EditThreadDialog({ thread, onChanged, onClose }: DetailsProps) {
  const { thread_id: id } = thread;
  const submit = useSubmit();
  // The values when the dialog was opened. The fields do not change if somebody else edits the thread meanwhile.
  const [before] = useState(() => ({
    title: typeof thread.metadata["title"] === "string" ? thread.metadata["title"] : "",
    own: ownMetadata(thread.metadata),
    all: thread.metadata,
  }));
  const { own } = before;
  const [title, setTitle] = useState(before.title);
  const [given, setGiven] = useState<unknown>(own);
  const isTitleChanged = title !== before.title;
  const isUnchanged = !isTitleChanged && JSON.stringify(given) === JSON.stringify(own);
  const save = async () => {
    if (!isJsonRecord(given)) throw new Error("The metadata must be a JSON object.");
    const changes = { ...changedMetadata(own, given), ...(isTitleChanged && { title }) };
    assertNotOverwriting(before.all, (await getThread(id)).metadata, changes);
    await updateThread(id, changes);
    showNotice("Thread updated.");
    onChanged();
    onClose();
  };
  return (
    <FormDialog title="Title and metadata" isEdited={!isUnchanged && !submit.isSending} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          submit.start(save);
        }}
      >
        <label class="field">
          <span>Title</span>
          <input value={title} onInput={({ currentTarget }) => setTitle(currentTarget.value)} />
        </label>
        <div class="field">
          <label for="thread-metadata">Metadata</label>
          <JsonField
            id="thread-metadata"
            value={Object.keys(own).length === 0 ? undefined : own}
            placeholder={'{"customer": "42"}'}
            rows={3}
            isStrict
            onChange={(value, text) => setGiven(text.trim() === "" ? {} : value)}
          />
          <p class="hint">Fields can be added and replaced, but not deleted.</p>
        </div>
        <FormFooter submit={submit} words="Save" isUnchanged={isUnchanged} onCancel={onClose} />
      </form>
    </FormDialog>
  );
}
