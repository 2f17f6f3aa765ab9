import { useMemo, useState } from "preact/hooks";
import { getSchemas, getStateAt, getThread, listNodes, updateState } from "../api/client.ts";
import { isJsonRecord, type JsonRecord, type JsonSchema } from "../api/records.ts";
import { runAction, showNotice } from "../app/notices.ts";
import { RequestError } from "../api-errors.ts";
import { Dialog } from "../components/dialogs.tsx";
import { Diff } from "../components/diff.tsx";
import { useFormValidation } from "../components/use-form-validation.ts";
import { Fields } from "../components/schema-form.tsx";
import { JsonField } from "../components/json-field.tsx";
import { JsonTree } from "../components/json-tree.tsx";
import { useResource } from "../components/use-resource.ts";
import { useSettled } from "../components/use-settled.ts";
import { changesOf, fieldsOf, valueAt } from "./editable-fields.ts";
import { findMessageChanges, isListOf, type MessageLists, messageListsOf } from "./message-edits.ts";
import { MessageListForm } from "./message-list-form.tsx";

/**
 * Milliseconds from the last change in the form until the form is compared with the stored state. Comparing a
 * large state takes long.
 */
const COMPARE_AFTER_MS = 250;

/** A change of a thread's state that the user has made in a form. */
export interface EditedState {
  /** The changed values, in the form in which a node would return them. */
  readonly update: JsonRecord;
  /** The content that each edited list of messages should have after the update, by state key. It is compared with the stored list. */
  readonly lists: MessageLists;
  /** The node in whose name the update is stored (`as_node`); if empty, the server uses the node that wrote last. */
  readonly asNode: string;
}

interface EditProps {
  readonly thread: string;
  /** The assistant whose schema describes the state. */
  readonly assistant: string | undefined;
  readonly values: JsonRecord;
  readonly checkpoint: string;
  readonly onStored: () => void;
  readonly onClose: () => void;
}

/** A dialog to edit the state of a checkpoint. The edited state is stored as a new checkpoint whose parent is the edited one. */
export function StateEditor({ thread, assistant, values, checkpoint, onStored, onClose }: EditProps) {
  const [from] = useState(checkpoint);
  const save = async (change: EditedState): Promise<void> => {
    await storeEdit(thread, from, change);
    const { status } = await getThread(thread);
    showNotice(
      status === "interrupted"
        ? "The state is stored. The thread is paused: resume it to go on."
        : "The state is stored.",
    );
    onStored();
    onClose();
  };
  return (
    <StateForm
      title="Edit the state"
      hint="Messages are stored as they stand here, other lists are appended to, other keys are replaced. A new state is stored after this one, which stays in the history."
      values={values}
      assistant={assistant}
      submit="Store"
      onSubmit={save}
      onClose={onClose}
    />
  );
}

/**
 * Stores a changed state. Resolves with the id of the new checkpoint.
 * @throws Error if the stored lists of messages differ from those that the form has shown, since the graph's
 *   reducer may combine lists in another way than the form assumes; the state is stored all the same
 */
export async function storeEdit(
  thread: string,
  checkpoint: string,
  { update, lists, asNode }: EditedState,
): Promise<string> {
  const { checkpoint_id } = await updateState(thread, {
    values: update,
    checkpoint_id: checkpoint,
    ...(asNode !== "" && { as_node: asNode }),
  });
  const names = Object.keys(lists);
  if (names.length > 0) {
    const { values } = await getStateAt(thread, checkpoint_id);
    const other = names.find((name) => !isListOf(lists[name] ?? [], valueAt(values, name)));
    if (other !== undefined)
      throw new Error(
        `The state is stored, but the graph's reducer has made another list of "${other}" than shown here. The history has both states.`,
      );
  }
  return checkpoint_id;
}

interface ChangeProps {
  readonly title: string;
  readonly hint: string;
  readonly values: JsonRecord;
  readonly assistant: string | undefined;
  readonly submit: string;
  /** Stores the change. The form shows the error if it fails. */
  readonly onSubmit: (change: EditedState) => Promise<void>;
  readonly onClose: () => void;
}

/**
 * A form for changing a state. Values that the state's schema describes have fields, lists of messages have message forms,
 * and all other values are edited as JSON.
 */
export function StateForm(props: ChangeProps) {
  const { title, hint, assistant, onClose } = props;
  // The form keeps the state with which it was opened, even if the thread gets a later one.
  const [values] = useState(props.values);
  const { value: schemas, isReading } = useResource(
    async () => (assistant === undefined ? undefined : getSchemas(assistant)),
    [assistant],
  );
  const { value: nodes = [] } = useResource(
    async () => (assistant === undefined ? [] : listNodes(assistant)),
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
        <ChangeForm {...props} values={values} nodes={nodes} schema={schemas?.state_schema ?? null} />
      )}
    </Dialog>
  );
}

function ChangeForm({
  values,
  submit,
  schema,
  nodes,
  onSubmit,
  onClose,
}: ChangeProps & { schema: JsonSchema | null; nodes: readonly string[] }) {
  const [fields, setFields] = useState(values);
  const [rest, setRest] = useState<JsonRecord | null>({});
  const [asNode, setAsNode] = useState("");
  const [nodeFault, setNodeFault] = useState<string | null>(null);
  const stored = useMemo(() => messageListsOf(schema, values), [schema, values]);
  const [edited, setEdited] = useState<MessageLists>({});
  const shown = useMemo(() => fieldsOf(schema, values), [schema, values]);
  const changes = useMemo(() => changesOf(shown, values, fields), [shown, values, fields]);
  const messages = useMemo(() => findMessageChanges(stored, edited), [stored, edited]);
  const validation = useFormValidation(shown, changes);
  const hasFields = Object.keys(shown.properties ?? {}).length > 0;
  const hasOthers = hasFields || Object.keys(stored).length > 0;
  const wrong = restFault(rest, stored);
  const update = { ...changes, ...messages.update, ...rest };
  const changed = Object.keys(update);
  const difference = useMemo(() => {
    const before = Object.keys({ ...changes, ...rest }).map((name) => [name, valueAt(values, name)] as const);
    return {
      before: { ...Object.fromEntries(before), ...messages.before },
      after: { ...changes, ...rest, ...messages.after },
    };
  }, [values, changes, rest, messages]);
  const compared = useSettled(difference, COMPARE_AFTER_MS);
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (!validation.validate() || wrong !== null || messages.isInvalid) return;
        void runAction(async () => {
          setNodeFault(null);
          try {
            await onSubmit({ update, lists: messages.lists, asNode });
          } catch (cause) {
            if (!isFaultOfNode(cause)) throw cause;
            setNodeFault(cause.message);
          }
        });
      }}
    >
      {Object.entries(stored).map(([name, list]) => (
        <MessageListForm
          key={name}
          name={name}
          messages={list}
          onChange={(after) => setEdited((now) => ({ ...now, [name]: after }))}
        />
      ))}
      {hasFields && <Fields schema={shown} value={fields} validation={validation} onChange={setFields} />}
      <div class="field">
        <label for="edit-values">{hasOthers ? "Other changes, as JSON" : "Changes, as JSON"}</label>
        <JsonField
          id="edit-values"
          value={undefined}
          isStrict
          rows={hasOthers ? 2 : 6}
          placeholder={'{"topic": "coffee"}'}
          onChange={(value) => setRest(value === undefined ? {} : isJsonRecord(value) ? value : null)}
          onWrong={(why) => validation.onUnread("", why)}
        />
        {wrong !== null && (
          <p class="hint bad" role="alert">
            {wrong}
          </p>
        )}
      </div>
      <div class="field">
        <label for="edit-node">As the node (decides what runs next)</label>
        <input
          id="edit-node"
          list="edit-nodes"
          value={asNode}
          placeholder="the one that wrote last"
          aria-invalid={nodeFault !== null}
          aria-describedby="edit-node-fault"
          onInput={({ currentTarget }) => setAsNode(currentTarget.value)}
        />
        <datalist id="edit-nodes">
          {nodes.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        {nodeFault !== null && (
          <p class="hint bad" role="alert" id="edit-node-fault">
            {asNode === ""
              ? "Choose a node: the change is stored as if that node had made it, and what follows the node runs next. "
              : ""}
            The server says: {nodeFault}
          </p>
        )}
      </div>
      <section class="field" aria-label="Changes" aria-busy={compared !== difference}>
        <h4>What changes</h4>
        {Object.keys(rest ?? {}).length > 0 && (
          <p class="hint">Values given as JSON are shown as they are sent.</p>
        )}
        <Diff {...compared} />
      </section>
      <div class="bar end">
        <span class="space dim">
          {changed.length === 0 ? "Nothing changes" : `Changes ${changed.join(", ")}`}
        </span>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button class="primary" disabled={wrong !== null || messages.isInvalid || validation.errors.has("")}>
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

/**
 * True if the server refuses a change because of `as_node`: none is given although several nodes ran last, in
 * parallel; or the graph has no node of the given name.
 */
const isFaultOfNode = (cause: unknown): cause is RequestError =>
  cause instanceof RequestError && cause.status === 422 && cause.message.includes("as_node");

/** Returns why the values given as JSON cannot be stored; null if they can. */
function restFault(rest: JsonRecord | null, lists: MessageLists): string | null {
  if (rest === null) return "must be an object: the keys that change, with their values";
  const twice = Object.keys(rest).find((name) => Object.hasOwn(lists, name));
  return twice === undefined ? null : `${twice} is edited in the list above: it cannot be given here as well`;
}
