import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Assistant, JsonRecord } from "../api/records.ts";
import { dismissErrorNoticeIf } from "../app/notices.ts";
import { assistantLabel } from "../components/use-assistants.ts";
import { LeaveConfirmation } from "../components/leave-confirmation.tsx";
import { useOneAtATime } from "../components/use-one-at-a-time.ts";
import { CopyRequestMenu } from "./copy-request-menu.tsx";
import { type DraftPersistence, loadRunDraft, saveRunDraft } from "./run-drafts.ts";
import { RunInputFields, useRunInput } from "./run-input-fields.tsx";
import {
  contextSchemaWithDefaults,
  optionsFaultOf,
  requestFieldsOf,
  RunOptions,
  type RunSettings,
  settingsErrorOf,
} from "./run-options.tsx";

interface RunFormProps {
  readonly assistants: readonly Assistant[];
  /** The assistant that is selected initially: an assistant's id, or a graph's name. */
  readonly initial: string | undefined;
  /** The id of the thread; null if a new thread is created for the run. */
  readonly thread: string | null;
  /** The state values of the thread; empty for a new thread. */
  readonly values: JsonRecord;
  /** The key under which unsent input is kept. */
  readonly draftKey: string;
  readonly isBusy: boolean;
  /** Whether only the message and the assistant are shown until the user asks for the other fields. */
  readonly isCompact?: boolean;
  readonly submit: string;
  readonly onChoose?: () => void;
  /** Starts the run. Resolves with false if this failed; the form then keeps its input. */
  readonly onRun: (request: JsonRecord) => Promise<boolean>;
}

/** The form for a new run: its assistant, input and options. */
export function RunForm({
  assistants,
  initial,
  thread,
  values,
  draftKey,
  isBusy,
  isCompact = false,
  submit,
  onChoose,
  onRun,
}: RunFormProps) {
  const form = useRef<HTMLFormElement>(null);
  const [draft] = useState(() => loadRunDraft(draftKey));
  // The other fields are shown if the draft has input for them, because this input will be sent with the run.
  const [wanted, setOpen] = useState<boolean | null>(
    Object.keys(draft.input).length > 0 || draft.json !== undefined ? true : null,
  );
  const isOpen = wanted ?? !isCompact;
  const [chosen, setChosen] = useState<string | undefined>(draft.assistant);
  const fallback = assistants.find(({ assistant_id, graph_id }) =>
    [assistant_id, graph_id].includes(initial ?? ""),
  );
  const assistant = chosen ?? fallback?.assistant_id ?? initial ?? assistants[0]?.assistant_id;
  const entered = useRunInput(assistant, draft, values);
  const { text, input, json, isJson, schemas, talk, isKnown } = entered;
  const [persistence, setPersistence] = useState<DraftPersistence>("stored");
  const isTooLarge = persistence === "too-large";
  // A layout effect, because an ordinary effect would be lost if the user left the page before the next frame.
  useLayoutEffect(() => {
    setPersistence(saveRunDraft(draftKey, { text, input, json, assistant: chosen, isJson }));
  }, [draftKey, text, input, json, chosen, isJson]);
  const [settings, setSettings] = useState<RunSettings>({ strategy: "enqueue" });
  const hasSettings =
    settingsErrorOf(settings) !== undefined || Object.keys(requestFieldsOf(settings, false)).length > 0;
  const [isSending, setSending] = useState(false);
  /** What is wrong with the options; null if nothing is. */
  const [fault, setFault] = useState<string | null>(null);
  const supplied = assistants.find(({ assistant_id }) => assistant_id === assistant)?.context;
  const contextSchema = useMemo(
    () => contextSchemaWithDefaults(schemas.value?.context_schema, supplied),
    [schemas.value, supplied],
  );
  const request = {
    assistant_id: assistant ?? "",
    input: entered.given,
    ...requestFieldsOf(settings, isBusy),
  };
  const run = useOneAtATime(async () => {
    if (!entered.validate()) {
      setOpen(true);
      requestAnimationFrame(() => form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus());
      return;
    }
    const wrong = optionsFaultOf(settings, contextSchema);
    setFault(wrong);
    if (wrong !== null) return;
    setSending(true);
    // The page may not know yet that a run is in progress, such as one for the previous message. The new run then
    // waits.
    const queued = thread !== null && !isBusy ? { ...request, multitask_strategy: "enqueue" } : request;
    if ((await onRun(queued)) && entered.clearSent()) {
      setOpen(null);
      setFault(null);
    }
    setSending(false);
  });
  const assistantChoice = (
    <label class="inline">
      {isOpen && <span class="dim">Assistant</span>}
      <select
        aria-label="Assistant"
        value={assistant}
        onChange={({ currentTarget }) => {
          setChosen(currentTarget.value);
          // An error that is shown belongs to a request with the previous assistant.
          dismissErrorNoticeIf(() => true);
          onChoose?.();
          setFault(null);
          entered.onAssistantChosen();
        }}
      >
        {assistants.map((one) => (
          <option key={one.assistant_id} value={one.assistant_id} selected={one.assistant_id === assistant}>
            {assistantLabel(one)}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <form
      class="run-form"
      ref={form}
      noValidate
      aria-busy={isSending}
      onSubmit={(event) => {
        event.preventDefault();
        void run();
      }}
    >
      {/* On a new thread, the assistant is chosen first: it decides which fields follow. */}
      {thread === null && <div class="bar">{assistantChoice}</div>}
      <RunInputFields
        entered={entered}
        isOpen={isOpen}
        onOpen={() => setOpen(true)}
        onSend={() => void run()}
      />
      <div class="bar foot">
        {isCompact && (
          <button type="button" class="quiet" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? "▾" : "▸"} {talk === null ? "Input" : "More input"}
          </button>
        )}
        {thread !== null && assistantChoice}
        {isOpen && (
          <button type="button" class="quiet" aria-pressed={isJson} onClick={() => entered.toggleJson()}>
            JSON
          </button>
        )}
        {(isOpen || isBusy) && (
          <RunOptions
            settings={settings}
            isBusy={isBusy}
            context={contextSchema}
            onChange={(changed) => {
              setFault(null);
              setSettings(changed);
            }}
          />
        )}
        {isOpen && <CopyRequestMenu thread={thread} request={request} />}
        <span class="space" />
        <button class="primary" disabled={isSending || !isKnown}>
          {submit}
        </button>
      </div>
      {(fault !== null || entered.fault !== null) && (
        <p class="hint bad" role="alert">
          {fault ?? entered.fault}
        </p>
      )}
      {persistence === "memory" && (
        <p class="hint" role="status">
          The browser's storage is full or disabled: the input is kept only until this page is closed or
          reloaded.
        </p>
      )}
      {schemas.error !== null && <p class="hint bad">{schemas.error}</p>}
      <LeaveConfirmation
        isEdited={isTooLarge || hasSettings}
        title="Leave without sending?"
        text={
          isTooLarge
            ? "The input is too large to be kept and will be lost."
            : "The options of the run will be lost."
        }
      />
    </form>
  );
}
