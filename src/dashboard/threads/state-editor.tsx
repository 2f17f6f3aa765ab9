import { useMemo, useState } from "preact/hooks";
import { getSchemas, getThread, updateState } from "../api/client.ts";
import { isJsonRecord, type JsonRecord, type JsonSchema } from "../api/records.ts";
import { runAction, showNotice } from "../app/notices.ts";
import { Dialog } from "../components/dialogs.tsx";
import { useChecks } from "../components/form-checks.ts";
import { Fields } from "../components/schema-form.tsx";
import { JsonField } from "../components/json-field.tsx";
import { JsonTree } from "../components/json-tree.tsx";
import { useResource } from "../components/use-resource.ts";
import { changesOf, fieldsOf } from "./editable-fields.ts";

interface EditProps {
  readonly thread: string;
  /** The assistant whose schema describes the state. */
  readonly assistant: string | undefined;
  readonly values: JsonRecord;
  readonly checkpoint: string;
  readonly onStored: () => void;
  readonly onClose: () => void;
}

/** Stores a changed state after a checkpoint. */
export function StateEditor({ thread, assistant, values, checkpoint, onStored, onClose }: EditProps) {
  const save = (update: JsonRecord, asNode: string) =>
    runAction(async () => {
      await storeUpdate(thread, checkpoint, update, asNode);
      const { status } = await getThread(thread);
      showNotice(
        status === "interrupted"
          ? "The state is stored. The thread is paused: resume it to go on."
          : "The state is stored.",
      );
      onStored();
      onClose();
    });
  return (
    <StateForm
      title="Edit the state"
      hint="Lists are appended to, other keys are replaced. A new state is stored after this one, which stays in the history."
      values={values}
      assistant={assistant}
      submit="Store"
      onSubmit={save}
      onClose={onClose}
    />
  );
}

/** Resolves with the id of the new checkpoint. */
export async function storeUpdate(
  thread: string,
  checkpoint: string,
  values: JsonRecord,
  asNode: string,
): Promise<string> {
  const made = await updateState(thread, {
    values,
    checkpoint_id: checkpoint,
    ...(asNode !== "" && { as_node: asNode }),
  });
  return made.checkpoint_id;
}

interface ChangeProps {
  readonly title: string;
  readonly hint: string;
  readonly values: JsonRecord;
  readonly assistant: string | undefined;
  readonly submit: string;
  /** `update`: the changed values, as a node would return them. */
  readonly onSubmit: (update: JsonRecord, asNode: string) => Promise<unknown>;
  readonly onClose: () => void;
}

/** A form for changing a state: values that its schema describes as fields, the others as JSON. */
export function StateForm(props: ChangeProps) {
  const { title, hint, assistant, onClose } = props;
  const { value: schemas, isReading } = useResource(
    async () => (assistant === undefined ? undefined : getSchemas(assistant)),
    [assistant],
  );
  return (
    <Dialog title={title} wide onClose={onClose}>
      <p class="dim">{hint}</p>
      {isReading ? (
        <p class="dim" aria-busy="true">
          Reading…
        </p>
      ) : (
        <ChangeForm {...props} schema={schemas?.state_schema ?? null} />
      )}
    </Dialog>
  );
}

function ChangeForm({
  values,
  submit,
  schema,
  onSubmit,
  onClose,
}: ChangeProps & { schema: JsonSchema | null }) {
  const [fields, setFields] = useState(values);
  const [rest, setRest] = useState<JsonRecord | null>({});
  const [asNode, setAsNode] = useState("");
  const shown = useMemo(() => fieldsOf(schema, values), [schema, values]);
  const changes = useMemo(() => changesOf(shown, values, fields), [shown, values, fields]);
  const checks = useChecks(shown, changes);
  const hasFields = Object.keys(shown.properties ?? {}).length > 0;
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (checks.ask() && rest !== null) void onSubmit({ ...changes, ...rest }, asNode);
      }}
    >
      {hasFields && <Fields schema={shown} value={fields} checks={checks} onChange={setFields} />}
      <div class="field">
        <label for="edit-values">{hasFields ? "Other changes, as JSON" : "Changes, as JSON"}</label>
        <JsonField
          id="edit-values"
          value={undefined}
          isStrict
          rows={hasFields ? 2 : 6}
          placeholder={'{"topic": "coffee"}'}
          onChange={(value) => setRest(value === undefined ? {} : isJsonRecord(value) ? value : null)}
          onWrong={(why) => checks.onUnread("", why)}
        />
        {rest === null && (
          <p class="hint bad" role="alert">
            must be an object: the keys that change, with their values
          </p>
        )}
      </div>
      <div class="field">
        <label for="edit-node">As the node (decides what runs next)</label>
        <input
          id="edit-node"
          value={asNode}
          placeholder="the one that wrote last"
          onInput={({ currentTarget }) => setAsNode(currentTarget.value)}
        />
      </div>
      <div class="bar end">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button class="primary" disabled={rest === null || checks.faults.has("")}>
          {submit}
        </button>
      </div>
      <details class="more">
        <summary>Current state</summary>
        <JsonTree value={values} open={2} />
      </details>
    </form>
  );
}
