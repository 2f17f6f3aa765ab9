import { useMemo, useState } from "preact/hooks";
import { getSchemas, getState, getStateAt, getThread, listNodes, updateState } from "../api/client.ts";
import {
  isJsonRecord,
  type JsonRecord,
  type JsonSchema,
  type Run,
  type ThreadState,
} from "../api/records.ts";
import { showNotice } from "../app/notices.ts";
import { RequestError } from "../api-errors.ts";
import { userNamedIn, userOfRun } from "../live/answer-requests.ts";
import type { ThreadSubscription } from "../live/thread-subscription.ts";
import { Dialog } from "../components/dialogs.tsx";
import { Diff } from "../components/diff.tsx";
import { useFormValidation, useReportBeforeNextEvent } from "../components/use-form-validation.ts";
import { LoadFailure } from "../components/empty-state.tsx";
import { Fields } from "../components/schema-form.tsx";
import { JsonField } from "../components/json-field.tsx";
import { LeaveConfirmation } from "../components/leave-confirmation.tsx";
import { JsonTree } from "../components/json-tree.tsx";
import { useResource } from "../components/use-resource.ts";
import { useDebouncedValue } from "../components/use-debounced-value.ts";
import { useSubmit } from "../components/use-submit.ts";
import { changesOf, fieldsOf, valueAt } from "./editable-fields.ts";
import {
  findMessageChanges,
  isListOf,
  mergeMessages,
  type MessageList,
  type MessageLists,
  messageListsOf,
} from "./message-list-update.ts";
import { MessageListForm } from "./message-list-form.tsx";

/**
 * Milliseconds from the last change in the form until the form is compared with the stored state. Comparing a
 * large state takes long.
 */
const COMPARE_AFTER_MS = 250;

/** A change of a thread's state that the user has made in a form. */
export interface StateFormChange {
  /** The changed values, in the form in which a node would return them. */
  readonly update: JsonRecord;
  /** The content that each edited list of messages should have after the update, by state key. It is compared with the stored list. */
  readonly lists: MessageLists;
  /** The node in whose name the update is stored (`as_node`); if empty, the server uses the node that wrote last. */
  readonly asNode: string;
}

/** What the user has entered in the form of a state, for entering it again in the form of a newer state. */
interface StateDraft {
  /** The changes made in fields. */
  readonly changes: JsonRecord;
  /** The text of the other changes, which are given as JSON. */
  readonly restText: string;
  readonly rest: JsonRecord;
  /** The lists of messages that were edited, as stored and as edited. */
  readonly lists: readonly (readonly [name: string, before: MessageList, after: MessageList])[];
  readonly asNode: string;
}

/** The choices of a user whose form shows a state that is no longer the thread's latest. */
interface NewerState {
  /** What has changed the state, and who did it. */
  readonly text: string;
  /** Shows the newer state in the form, with the user's changes on it. */
  readonly onRebase: (draft: StateDraft) => Promise<void>;
  /** Stores the change after the state in the form all the same. */
  readonly onBranch: (change: StateFormChange) => Promise<void>;
}

interface EditProps {
  readonly watch: ThreadSubscription;
  /** The assistant whose schema describes the state. */
  readonly assistant: string | undefined;
  /** The state that the dialog was opened on. */
  readonly state: ThreadState;
  readonly onStored: () => void;
  readonly onClose: () => void;
}

const idOf = (state: ThreadState | null): string => state?.checkpoint?.checkpoint_id ?? "";

/**
 * A dialog to edit a state. The edited state is stored as a new checkpoint whose parent is the edited one. If the edited one was the thread's
 * latest and no longer is, the user chooses where the change is stored, so that nobody's change is lost unnoticed.
 */
export function StateEditor({ watch, assistant, state, onStored, onClose }: EditProps) {
  const { id: thread } = watch;
  const [edited, setEdited] = useState(state);
  const [draft, setDraft] = useState<StateDraft | undefined>();
  /** Whether the user edits the thread's latest state. To edit a past one means to begin a branch there. */
  const [isOfLatest] = useState(() => idOf(state) === idOf(watch.state.peek()));
  /** The states that this dialog has had in its form. The page may show one of them again until its next read. */
  const [known, setKnown] = useState<readonly string[]>([idOf(state)]);
  /** The newer state because of which the server has refused to store the change. */
  const [refusing, setRefusing] = useState<ThreadState | null>(null);
  const shown = watch.state.value;
  const newer = refusing ?? (isOfLatest && shown !== null && !known.includes(idOf(shown)) ? shown : null);
  const store = async (change: StateFormChange, isLatestRequired: boolean): Promise<void> => {
    await storeEdit(thread, idOf(edited), change, isLatestRequired);
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
      hint="Messages replace the stored list. Other lists are appended, other fields replaced. Saving adds a new checkpoint; the old one stays in the history."
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
      submit="Save"
      onSubmit={save}
      onClose={onClose}
    />
  );
}

/** Says what has made a newer state, and who. */
function changeText({ metadata }: ThreadState): string {
  const user = userNamedIn(metadata);
  const who =
    typeof metadata["run_id"] === "string"
      ? `A run${user === null ? "" : ` that ${user} started`}`
      : (user ?? "Somebody else");
  return `${who} has changed the state while you were editing.`;
}

function busyText(run: Run): string {
  const user = userOfRun(run);
  return `A run${user === null ? "" : ` that ${user} started`} is in progress. You can save the state when it has ended.`;
}

/**
 * Stores a changed state. Resolves with the id of the new checkpoint. `isLatestRequired`: whether the server refuses the change if the
 * checkpoint is not the thread's latest.
 * @throws Error if the stored lists of messages differ from those that the form has shown, since the graph's
 *   reducer may combine lists in another way than the form assumes; the state is stored all the same
 */
export async function storeEdit(
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
    const other = names.find((name) => !isListOf(lists[name] ?? [], valueAt(values, name)));
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
  /** The id of the checkpoint with these values. The form begins anew when it changes. */
  readonly checkpoint: string;
  /** What the form begins with; absent: the values. */
  readonly draft?: StateDraft | undefined;
  /** Set when a newer state exists than the one in the form. */
  readonly newer?: NewerState | null;
  /** Why nothing can be stored now; null: it can. */
  readonly busy?: string | null;
  readonly assistant: string | undefined;
  readonly submit: string;
  /** Stores the change. The form shows the error if it fails. */
  readonly onSubmit: (change: StateFormChange) => Promise<void>;
  readonly onClose: () => void;
}

/**
 * A form for changing a state. Values that the state's schema describes have fields, lists of messages have message forms,
 * and all other values are edited as JSON.
 */
export function StateForm(props: ChangeProps) {
  const { title, hint, assistant, checkpoint, onClose } = props;
  const [isEdited, setEdited] = useState(false);
  // The values stay the same object, even if they are read again.
  const values = useMemo(() => props.values, [checkpoint]);
  const { value: schemas, isReading } = useResource(
    async () => (assistant === undefined ? undefined : getSchemas(assistant)),
    [assistant],
  );
  const { value: nodes = [] } = useResource(
    async () => (assistant === undefined ? [] : listNodes(assistant)),
    [assistant],
  );
  return (
    <Dialog title={title} wide isEdited={isEdited} onClose={onClose}>
      <LeaveConfirmation isEdited={isEdited} />
      <p class="dim">{hint}</p>
      {isReading ? (
        <p class="dim" aria-busy="true">
          Loading…
        </p>
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
    </Dialog>
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
  /** Called with whether the user has entered a change. */
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
  const compared = useDebouncedValue(difference, COMPARE_AFTER_MS);
  /** Does something with the change, if it is valid. */
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
  useReportBeforeNextEvent(() => onEdit(isEdited), [isEdited]);
  const isRestWrong = wrong !== null || validation.errors.has("");
  const isWrong = wrong !== null || messages.isInvalid || validation.errors.has("");
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        // The Enter key must not choose between the two states.
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
      {hasFields && <Fields schema={shown} value={fields} validation={validation} onChange={setFields} />}
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
          <Diff {...compared} />
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
      {request.error !== null && !isRestWrong && <LoadFailure text={request.error} />}
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

/** Merges the message lists of a draft with the changes that others have stored since. */
function mergedLists(stored: MessageLists, draft: StateDraft | undefined): MessageLists {
  const lists = (draft?.lists ?? []).flatMap(([name, before, after]) => {
    const newer = stored[name];
    return newer === undefined ? [] : [[name, mergeMessages(before, after, newer)] as const];
  });
  return Object.fromEntries(lists);
}

/**
 * True if the server refuses a change because of `as_node`: none is given although several nodes ran last, in
 * parallel; or the graph has no node of the given name.
 */
const isFaultOfNode = (cause: unknown): cause is RequestError =>
  cause instanceof RequestError && cause.status === 422 && cause.message.includes("as_node");

/** Returns why the values given as JSON cannot be stored; null if they can. */
function restFault(rest: JsonRecord | null, lists: MessageLists): string | null {
  if (rest === null) return "must be an object with the fields that change and their values";
  const twice = Object.keys(rest).find((name) => Object.hasOwn(lists, name));
  return twice === undefined ? null : `${twice} is edited in the list above: it cannot be given here as well`;
}
