import { useMemo, useState } from "preact/hooks";
import {
  getAssistantSchemas,
  getState,
  getStateAt,
  getThread,
  listGraphNodes,
  updateState,
} from "../api/client.ts";
import {
  isJsonRecord,
  type JsonRecord,
  type JsonSchema,
  type Run,
  type ThreadState,
} from "../api/records.ts";
import { showNotice } from "../app/notices.ts";
import { RequestError } from "../api-errors.ts";
import { userNameIn, userNameOfRun } from "../live/answer-requests.ts";
import type { ThreadSubscription } from "../live/thread-subscription.ts";
import { FormDialog } from "../components/form-dialog.tsx";
import { JsonDiff } from "../components/json-diff.tsx";
import { useFormValidation, useReportBeforeNextEvent } from "../components/use-form-validation.ts";
import { ErrorAlert, Loading } from "../components/empty-state.tsx";
import { SchemaFields } from "../components/schema-form.tsx";
import { JsonField } from "../components/json-field.tsx";
import { JsonTree } from "../components/json-tree.tsx";
import { useResource } from "../components/use-resource.ts";
import { useDebouncedValue } from "../components/use-debounced-value.ts";
import { useSubmit } from "../components/use-submit.ts";
import { changedFieldsOf, editableFieldsSchema, ownValueOf } from "./editable-fields.ts";
import {
  findMessageChanges,
  isExpectedList,
  mergeConcurrentMessageChanges,
  type MessageList,
  type MessageLists,
  messageListsOf,
} from "./message-list-update.ts";
import { MessageListForm } from "./message-list-form.tsx";

/**
 * Milliseconds without a change in the form after which the form is compared with the stored state. Comparing a large
 * state takes long.
 */
const COMPARE_AFTER_MS = 250;

/** A change of a thread's state, as entered in a form. */
export interface StateFormChange {
  /** The changed values, like the return value of a node. */
  readonly update: JsonRecord;
  /** The content that each edited list of messages should have after the update, by its name in the state. */
  readonly lists: MessageLists;
  /**
   * The node that is named as the author of the update (`as_node`). If empty, the server uses the node that wrote
   * last.
   */
  readonly asNode: string;
}

/** What the user has entered in the form, to enter it again in the form of a newer state. */
interface StateDraft {
  /** The changes made in fields for single values. */
  readonly changes: JsonRecord;
  /** The text in the field for other changes as JSON. `rest` is its parsed value. */
  readonly restText: string;
  readonly rest: JsonRecord;
  /** The edited lists of messages, as stored and as edited. */
  readonly lists: readonly (readonly [name: string, before: MessageList, after: MessageList])[];
  readonly asNode: string;
}

/** The choices of the user if the thread now has a newer state than the one in the form. */
interface NewerState {
  /** A text that says what or who has made the newer state. */
  readonly text: string;
  /** Shows the newer state in the form, and applies the user's changes to it. */
  readonly onRebase: (draft: StateDraft) => Promise<void>;
  /** Stores the change as a branch, which begins at the state in the form. */
  readonly onBranch: (change: StateFormChange) => Promise<void>;
}

interface EditProps {
  readonly watch: ThreadSubscription;
  /** The id of the assistant whose schema describes the state. */
  readonly assistant: string | undefined;
  /** The state for which the dialog was opened. */
  readonly state: ThreadState;
  readonly onStored: () => void;
  readonly onClose: () => void;
}

const idOf = (state: ThreadState | null): string => state?.checkpoint?.checkpoint_id ?? "";

/**
 * A dialog to edit a state. The result is stored as a new checkpoint, whose parent is the edited one. If the thread
 * has got a newer state meanwhile, the user chooses which of the two is the parent, so that no change of others is
 * lost unnoticed.
 */
export function StateEditor({ watch, assistant, state, onStored, onClose }: EditProps) {
  const { id: thread } = watch;
  const [edited, setEdited] = useState(state);
  const [draft, setDraft] = useState<StateDraft | undefined>();
  /**
   * Whether the edited state was the thread's latest when the dialog was opened. An edit of an older state begins a
   * branch.
   */
  const [isOfLatest] = useState(() => idOf(state) === idOf(watch.state.peek()));
  /**
   * The ids of the states that were in this form. The page may still show one of them until it reads the thread again;
   * such a state does not count as newer.
   */
  const [known, setKnown] = useState<readonly string[]>([idOf(state)]);
  /** The newer state because of which the server has refused to store the change; null if it has not refused. */
  const [refusing, setRefusing] = useState<ThreadState | null>(null);
  const shown = watch.state.value;
  const newer = refusing ?? (isOfLatest && shown !== null && !known.includes(idOf(shown)) ? shown : null);
  const store = async (change: StateFormChange, isLatestRequired: boolean): Promise<void> => {
    await storeStateChange(thread, idOf(edited), change, isLatestRequired);
    const { status } = await getThread(thread);
    showNotice(
      status === "interrupted" ? "State saved. The thread is paused: resume it to continue." : "State saved.",
    );
    onStored();
    onClose();
  };
  const save = async (change: StateFormChange): Promise<void> => {
    try {
      await store(change, isOfLatest);
    } catch (cause) {
      if (!(cause instanceof RequestError) || cause.code !== "checkpoint.outdated") throw cause;
      setRefusing(await getState(thread));
      watch.refresh();
    }
  };
  const rebase = async (entered: StateDraft): Promise<void> => {
    const latest = await getState(thread);
    setKnown((before) => [...before, idOf(latest)]);
    setDraft(entered);
    setEdited(latest);
    setRefusing(null);
  };
  const { active } = watch;
  return (
    <StateForm
      title="Edit state"
      hint={`${effectText(edited)} ${
        isOfLatest
          ? "Saving adds a new checkpoint; the old one stays in the history."
          : "This is an older state: after saving, the thread continues from it. The later states stay in the history."
      }`}
      values={edited.values}
      checkpoint={idOf(edited)}
      draft={draft}
      newer={
        newer === null
          ? null
          : { text: changeText(newer), onRebase: rebase, onBranch: (change) => store(change, false) }
      }
      busy={active === undefined ? null : busyText(active)}
      assistant={assistant}
      submit={isOfLatest ? "Save" : "Save as a branch"}
      onSubmit={save}
      onClose={onClose}
    />
  );
}

/** Returns a text that says what an edit does to the values of a state. */
const effectText = ({ values }: ThreadState): string =>
  isJsonRecord(values["__snapshot__"])
    ? "Each field replaces the stored one, lists too. The machine runs no entry actions."
    : "Messages replace the stored list. Other lists are appended, other fields replaced.";

/** Returns a text that says what or who has made a newer state. */
function changeText({ metadata }: ThreadState): string {
  const user = userNameIn(metadata);
  const who =
    typeof metadata["run_id"] === "string"
      ? `A run${user === null ? "" : ` that ${user} started`}`
      : (user ?? "Somebody else");
  return `${who} has changed the state while you were editing.`;
}

function busyText(run: Run): string {
  const user = userNameOfRun(run);
  return `A run${user === null ? "" : ` that ${user} started`} is in progress. You can save the state when it has ended.`;
}

/**
 * Stores a changed state. Resolves with the id of the new checkpoint. `isLatestRequired`: the server refuses the
 * change unless `checkpoint` is the thread's latest.
 * @throws RequestError if the server refuses the change; Error if a stored list of messages differs from the edited
 * one, because the graph's reducer works differently than the form assumes. In the latter case, the new checkpoint
 * stays.
 */
export async function storeStateChange(
  thread: string,
  checkpoint: string,
  { update, lists, asNode }: StateFormChange,
  isLatestRequired = false,
): Promise<string> {
  const { checkpoint_id } = await updateState(thread, {
    values: update,
    checkpoint_id: checkpoint,
    ...(asNode !== "" && { as_node: asNode }),
    ...(isLatestRequired && { require_latest: true }),
  });
  const names = Object.keys(lists);
  if (names.length > 0) {
    const { values } = await getStateAt(thread, checkpoint_id);
    const other = names.find((name) => !isExpectedList(lists[name] ?? [], ownValueOf(values, name)));
    if (other !== undefined)
      throw new Error(
        `The saved list "${other}" differs from your edit, because the graph's reducer changed it. The history has both states.`,
      );
  }
  return checkpoint_id;
}

interface ChangeProps {
  readonly title: string;
  readonly hint: string;
  readonly values: JsonRecord;
  /** The id of the checkpoint with these values. If it changes, the form begins anew. */
  readonly checkpoint: string;
  /**
   * Earlier input of the user, which the form enters again on top of `values`; absent: the form begins with `values`
   * alone.
   */
  readonly draft?: StateDraft | undefined;
  /** Not null if the thread has a newer state than the one in the form. */
  readonly newer?: NewerState | null;
  /** Why nothing can be stored now; null if it can be. */
  readonly busy?: string | null;
  readonly assistant: string | undefined;
  readonly submit: string;
  /** Stores the change. If the promise rejects, the form shows the error. */
  readonly onSubmit: (change: StateFormChange) => Promise<void>;
  readonly onClose: () => void;
}

/**
 * A form for changing a state. Values that the state's schema describes have fields, lists of messages have their own
 * form, and all other values are edited as JSON.
 */
export function StateForm(props: ChangeProps) {
  const { title, hint, assistant, checkpoint, onClose } = props;
  const [isEdited, setEdited] = useState(false);
  // Stays the same object while the checkpoint is the same, even if the values are read again.
  const values = useMemo(() => props.values, [checkpoint]);
  const { value: schemas, isReading } = useResource(
    async () => (assistant === undefined ? undefined : getAssistantSchemas(assistant)),
    [assistant],
  );
  const { value: nodes = [] } = useResource(
    async () => (assistant === undefined ? [] : listGraphNodes(assistant)),
    [assistant],
  );
  return (
    <FormDialog title={title} wide isEdited={isEdited} onClose={onClose}>
      <p class="dim">{hint}</p>
      {isReading ? (
        <Loading />
      ) : (
        <ChangeForm
          key={checkpoint}
          {...props}
          values={values}
          nodes={nodes}
          schema={schemas?.state_schema ?? null}
          onEdit={setEdited}
        />
      )}
    </FormDialog>
  );
}

function ChangeForm({
  values,
  draft,
  newer = null,
  busy = null,
  submit,
  schema,
  nodes,
  onSubmit,
  onEdit,
  onClose,
}: ChangeProps & {
  schema: JsonSchema | null;
  nodes: readonly string[];
  /** Called with true when the user has entered a change, and with false when there is none. */
  onEdit: (isEdited: boolean) => void;
}) {
  const [fields, setFields] = useState(() => ({ ...values, ...draft?.changes }));
  const [rest, setRest] = useState<JsonRecord | null>(draft?.rest ?? {});
  const [restText, setRestText] = useState(draft?.restText ?? "");
  const [asNode, setAsNode] = useState(draft?.asNode ?? "");
  const [nodeFault, setNodeFault] = useState<string | null>(null);
  const [conflict, setConflict] = useState<string | null>(null);
  const request = useSubmit();
  const stored = useMemo(() => messageListsOf(schema, values), [schema, values]);
  const [edited, setEdited] = useState<MessageLists>(() => mergedLists(stored, draft));
  const shown = useMemo(() => editableFieldsSchema(schema, values), [schema, values]);
  const changes = useMemo(() => changedFieldsOf(shown, values, fields), [shown, values, fields]);
  const messages = useMemo(() => findMessageChanges(stored, edited), [stored, edited]);
  const validation = useFormValidation(shown, changes);
  const hasFields = Object.keys(shown.properties ?? {}).length > 0;
  const hasOthers = hasFields || Object.keys(stored).length > 0;
  const wrong = restFault(rest, stored);
  const update = { ...changes, ...messages.update, ...rest };
  const changed = Object.keys(update);
  const difference = useMemo(() => {
    const before = Object.keys({ ...changes, ...rest }).map(
      (name) => [name, ownValueOf(values, name)] as const,
    );
    return {
      before: { ...Object.fromEntries(before), ...messages.before },
      after: { ...changes, ...rest, ...messages.after },
    };
  }, [values, changes, rest, messages]);
  const compared = useDebouncedValue(difference, COMPARE_AFTER_MS);
  /** Calls `work` if the form is valid. If `work` rejects, shows the error. */
  const use = (work: () => Promise<void>): void => {
    if (!validation.validate() || wrong !== null || messages.isInvalid) return;
    request.start(async () => {
      setNodeFault(null);
      setConflict(null);
      try {
        await work();
      } catch (cause) {
        if (isFaultOfNode(cause)) setNodeFault(cause.message);
        else if (cause instanceof RequestError && cause.status === 409) setConflict(cause.message);
        else throw cause;
      }
    });
  };
  const change: StateFormChange = { update, lists: messages.lists, asNode };
  const entered = (): StateDraft => ({
    changes,
    rest: rest ?? {},
    restText,
    asNode,
    lists: Object.entries(messages.lists).map(([name, list]) => [name, stored[name] ?? [], list]),
  });
  const hasFault = [...validation.errors.values()].some(({ isMissing }) => !isMissing);
  const isEdited = changed.length > 0 || restText.trim() !== "" || hasFault;
  // While the change is being sent, leaving does not lose it, so the user is not asked.
  const isUnsent = isEdited && !request.isSending;
  useReportBeforeNextEvent(() => onEdit(isUnsent), [isUnsent]);
  const isRestWrong = wrong !== null || validation.errors.has("");
  const isWrong = wrong !== null || messages.isInvalid || validation.errors.has("");
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        // If there is a newer state, the user has to click one of two buttons, so the Enter key does nothing.
        if (newer === null) use(() => onSubmit(change));
      }}
    >
      {Object.entries(stored).map(([name, list]) => (
        <MessageListForm
          key={name}
          name={name}
          messages={list}
          initial={edited[name]}
          onChange={(after) => setEdited((now) => ({ ...now, [name]: after }))}
        />
      ))}
      {hasFields && (
        <SchemaFields schema={shown} value={fields} validation={validation} onChange={setFields} />
      )}
      <div class="field">
        <label for="edit-values">{hasOthers ? "Other changes, as JSON" : "Changes, as JSON"}</label>
        <JsonField
          id="edit-values"
          value={undefined}
          written={restText}
          isStrict
          rows={hasOthers ? 2 : 6}
          placeholder={'{"topic": "coffee"}'}
          onChange={(value, text) => {
            setRest(value === undefined ? {} : isJsonRecord(value) ? value : null);
            setRestText(text);
          }}
          onWrong={(why) => validation.onUnread("", why)}
        />
        {wrong !== null && (
          <p class="hint bad" role="alert">
            {wrong}
          </p>
        )}
      </div>
      <div class="field">
        <label for="edit-node">Save as node (its successors run next)</label>
        <input
          id="edit-node"
          list="edit-nodes"
          value={asNode}
          placeholder="last node that wrote"
          aria-invalid={nodeFault !== null}
          aria-describedby="edit-node-fault"
          onInput={({ currentTarget }) => {
            setAsNode(currentTarget.value);
            setNodeFault(null);
          }}
        />
        <datalist id="edit-nodes">
          {nodes.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        {nodeFault !== null && (
          <p class="hint bad" role="alert" id="edit-node-fault">
            {asNode === ""
              ? "Choose a node: the change is saved as if that node had made it, and its successors run next. "
              : ""}
            The server says: {nodeFault}
          </p>
        )}
      </div>
      <section class="field" aria-label="Changes" aria-busy={compared !== difference}>
        <h4>What changes</h4>
        {Object.keys(rest ?? {}).length > 0 && (
          <p class="hint">For JSON fields, the diff shows the sent value, not the result.</p>
        )}
        {isRestWrong ? (
          <p class="dim">The other changes cannot be read: correct them above.</p>
        ) : (
          <JsonDiff {...compared} />
        )}
      </section>
      {newer !== null && (
        <p class="note" role="alert">
          {newer.text} Your change is not saved yet: apply it to the newer state, or save it as a branch. Then
          the thread continues from the old state, without the newer changes, which stay in the history.
        </p>
      )}
      {(busy ?? conflict) !== null && (
        <p class="note" role="alert">
          {busy ?? conflict}
        </p>
      )}
      {request.error !== null && !isRestWrong && <ErrorAlert text={request.error} />}
      <div class="bar end">
        <span class="space dim">
          {isRestWrong ? "" : changed.length === 0 ? "No changes" : `Changes ${changed.join(", ")}`}
        </span>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        {newer === null ? (
          <button class="primary" disabled={isWrong || request.isSending}>
            {submit}
          </button>
        ) : (
          <>
            <button
              type="button"
              disabled={isWrong || request.isSending}
              onClick={() => use(() => newer.onBranch(change))}
            >
              Save as a branch
            </button>
            <button
              type="button"
              class="primary"
              disabled={isWrong || request.isSending}
              onClick={() => use(() => newer.onRebase(entered()))}
            >
              Apply my changes to the newer state
            </button>
          </>
        )}
      </div>
      <details class="more">
        <summary>Current state</summary>
        <JsonTree value={values} open={2} />
      </details>
    </form>
  );
}

/** Returns the edited message lists of a draft, merged with changes that others have stored since. */
function mergedLists(stored: MessageLists, draft: StateDraft | undefined): MessageLists {
  const lists = (draft?.lists ?? []).flatMap(([name, before, after]) => {
    const newer = stored[name];
    return newer === undefined ? [] : [[name, mergeConcurrentMessageChanges(before, after, newer)] as const];
  });
  return Object.fromEntries(lists);
}

/**
 * Returns whether the server refuses a change because of `as_node`: it is missing although several nodes ran last, in
 * parallel, or it names no node of the graph.
 */
const isFaultOfNode = (cause: unknown): cause is RequestError =>
  cause instanceof RequestError && cause.status === 422 && cause.message.includes("as_node");

/** Returns why the values entered as JSON cannot be stored; null if they can be. */
function restFault(rest: JsonRecord | null, lists: MessageLists): string | null {
  if (rest === null) return "must be an object with the fields that change and their values";
  const twice = Object.keys(rest).find((name) => Object.hasOwn(lists, name));
  return twice === undefined ? null : `${twice} is edited in the list above: it cannot be given here as well`;
}
