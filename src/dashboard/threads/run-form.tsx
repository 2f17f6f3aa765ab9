import { useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { getSchemas } from "../api/client.ts";
import { type Assistant, isJsonRecord, type JsonRecord, type JsonSchema } from "../api/records.ts";
import { dismissErrorIf } from "../app/notices.ts";
import { assistantLabel } from "../components/use-assistants.ts";
import { useFormValidation } from "../components/use-form-validation.ts";
import { Fields } from "../components/schema-form.tsx";
import { JsonField } from "../components/json-field.tsx";
import { useOneAtATime } from "../components/use-one-at-a-time.ts";
import { useResource } from "../components/use-resource.ts";
import { validateFormValue } from "../components/form-schema.ts";
import { CopyCode } from "./request-code.tsx";
import { EMPTY_RUN_DRAFT, loadRunDraft, saveRunDraft } from "./run-drafts.ts";
import { messagesProperty, withMessage } from "./run-input.ts";
import {
  contextSchemaWithDefaults,
  runFieldsOf,
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
  readonly isBusy: boolean;
  /** Whether only the message and the assistant are shown until the user asks for the other fields. */
  readonly isCompact?: boolean;
  readonly submit: string;
  readonly onChoose?: () => void;
  /** Starts the run. Resolves with false if this failed; the form then keeps its input. */
  readonly onRun: (request: JsonRecord) => Promise<boolean>;
}

/**
 * The form for a new run. If the graph's input schema has messages, there is a field for a message. Other input has
 * fields generated from the schema; without a schema, it is entered as JSON.
 */
export function RunForm({
  assistants,
  initial,
  thread,
  isBusy,
  isCompact = false,
  submit,
  onChoose,
  onRun,
}: RunFormProps) {
  const id = useId();
  const form = useRef<HTMLFormElement>(null);
  const [draft] = useState(() => (thread === null ? EMPTY_RUN_DRAFT : loadRunDraft(thread)));
  // Stored input is shown in the other fields, because it will be sent with the run.
  const [wanted, setOpen] = useState<boolean | null>(Object.keys(draft.input).length > 0 ? true : null);
  const isOpen = wanted ?? !isCompact;
  const [chosen, setChosen] = useState<string | undefined>(draft.assistant);
  const [input, setInput] = useState<JsonRecord>(draft.input);
  const latestInput = useRef(input);
  latestInput.current = input;
  const [text, setText] = useState(draft.text);
  const [isJsonWanted, setJsonWanted] = useState(draft.isJson);
  // A layout effect, because an ordinary effect would be lost if the user left the page before the next frame.
  useLayoutEffect(() => {
    if (thread === null) return;
    saveRunDraft(thread, { text, input, assistant: chosen, isJson: isJsonWanted });
  }, [thread, text, input, chosen, isJsonWanted]);
  const [settings, setSettings] = useState<RunSettings>({ strategy: "enqueue" });
  /**
   * Counts how often the input was cleared. It is part of the Preact keys of the fields, so that cleared fields are
   * created anew. The assistant is not part of the keys: it changes from the graph's name to an id when the list of
   * assistants arrives, and the fields would then lose what the user has typed.
   */
  const [round, setRound] = useState(0);
  const [isSending, setSending] = useState(false);
  /** What is wrong with the options; null if nothing is. */
  const [fault, setFault] = useState<string | null>(null);
  const fallback = assistants.find(({ assistant_id, graph_id }) =>
    [assistant_id, graph_id].includes(initial ?? ""),
  );
  const assistant = chosen ?? fallback?.assistant_id ?? initial ?? assistants[0]?.assistant_id;
  const schemas = useResource(
    async () => (assistant === undefined ? undefined : getSchemas(assistant)),
    [assistant],
  );
  const schema = schemas.value?.input_schema ?? null;
  const supplied = assistants.find(({ assistant_id }) => assistant_id === assistant)?.context;
  const contextSchema = useMemo(
    () => contextSchemaWithDefaults(schemas.value?.context_schema, supplied),
    [schemas.value, supplied],
  );
  const talk = messagesProperty(schema);
  const rest = useMemo(
    () => (schema === null || talk === null ? schema : without(schema, talk)),
    [schema, talk],
  );
  const isText = isJsonWanted || schema?.properties === undefined;
  const validation = useFormValidation(isText ? null : rest, input);
  const hasFields = Object.keys(rest?.properties ?? {}).length > 0;
  const given = isJsonWanted || talk === null || text.trim() === "" ? input : withMessage(input, talk, text);
  const request = { assistant_id: assistant ?? "", input: given, ...runFieldsOf(settings, isBusy) };
  const begin = () => {
    setInput({});
    validation.clear();
    setFault(null);
    setRound((before) => before + 1);
  };
  const run = useOneAtATime(async () => {
    if (!validation.validate()) {
      setOpen(true);
      requestAnimationFrame(() => form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus());
      return;
    }
    const unread = settingsErrorOf(settings);
    if (unread !== undefined) return setFault(`In the options, ${unread}.`);
    const [wrong] = validateFormValue(contextSchema ?? {}, settings.context);
    if (wrong !== undefined) return setFault(`In the options, ${wrong.at} ${wrong.text}.`);
    setFault(null);
    setSending(true);
    // The page may not know yet that a run is in progress, such as one just started with the previous message.
    const queued = thread !== null && !isBusy ? { ...request, multitask_strategy: "enqueue" } : request;
    if (await onRun(queued)) {
      // What the user has typed since the run was sent is kept.
      setText((now) => (now === text ? "" : now));
      if (latestInput.current === input) {
        setOpen(null);
        begin();
      }
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
          dismissErrorIf(() => true);
          onChoose?.();
          begin();
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
  const isNoObject = validation.errors.get("")?.text === NO_OBJECT;
  const isKnown = schemas.value !== undefined || schemas.error !== null;
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
      {!isKnown ? null : isText ? (
        isOpen && (
          <JsonField
            key={`json ${round}`}
            id={`${id}-json`}
            label="Input, as JSON"
            value={Object.keys(input).length === 0 ? undefined : input}
            rows={3}
            placeholder={'{"messages": [{"role": "user", "content": "hello"}]}'}
            isStrict
            onChange={(value) => {
              // The schema could not be read, so the input is entered as JSON. The form keeps this field even if a
              // later attempt reads the schema.
              if (schemas.error !== null) setJsonWanted(true);
              setInput(isJsonRecord(value) ? value : {});
              validation.onUnread("", value === undefined || isJsonRecord(value) ? null : NO_OBJECT);
            }}
            onWrong={(why) => why !== null && validation.onUnread("", why)}
            aria-invalid={isNoObject}
          />
        )
      ) : (
        <>
          {talk !== null && (
            <textarea
              id={`${id}-text`}
              class="message"
              aria-label="Message"
              placeholder="Type a message (Enter to send)"
              title="Shift+Enter for a new line"
              rows={Math.min(8, Math.max(1, text.split("\n").length))}
              value={text}
              onInput={({ currentTarget }) => setText(currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
                event.preventDefault();
                if (text.trim() !== "") void run();
              }}
            />
          )}
          {isOpen && hasFields && rest !== null && (
            <Fields key={round} schema={rest} value={input} validation={validation} onChange={setInput} />
          )}
        </>
      )}
      <div class="bar foot">
        {isCompact && (
          <button type="button" class="quiet" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? "▾" : "▸"} {talk === null ? "Input" : "More input"}
          </button>
        )}
        {thread !== null && assistantChoice}
        {isOpen && (
          <button
            type="button"
            class="quiet"
            aria-pressed={isJsonWanted}
            onClick={() => {
              if (!isJsonWanted && talk !== null && text.trim() !== "") setInput(given);
              setJsonWanted(!isJsonWanted);
              validation.clear();
            }}
          >
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
        {isOpen && <CopyCode thread={thread} request={request} />}
        <span class="space" />
        <button class="primary" disabled={isSending || !isKnown}>
          {submit}
        </button>
      </div>
      {(fault !== null || (isText && isNoObject)) && (
        <p class="hint bad" role="alert">
          {fault ?? NO_OBJECT}
        </p>
      )}
      {schemas.error !== null && <p class="hint bad">{schemas.error}</p>}
    </form>
  );
}

const NO_OBJECT = "The input must be a JSON object.";

function without(schema: JsonSchema, name: string): JsonSchema {
  const { [name]: _, ...properties } = schema.properties ?? {};
  return { ...schema, properties };
}
