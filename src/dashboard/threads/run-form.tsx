import { useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { getSchemas } from "../api/client.ts";
import { type Assistant, isJsonRecord, type JsonRecord, type JsonSchema } from "../api/records.ts";
import { dismissErrorIf } from "../app/notices.ts";
import { assistantLabel } from "../components/use-assistants.ts";
import { useFormValidation } from "../components/use-form-validation.ts";
import { Fields } from "../components/schema-form.tsx";
import { LeaveConfirmation } from "../components/leave-confirmation.tsx";
import { JsonField, parseJsonText } from "../components/json-field.tsx";
import { useOneAtATime } from "../components/use-one-at-a-time.ts";
import { useResource } from "../components/use-resource.ts";
import { validateFormValue } from "../components/form-schema.ts";
import { CopyCode } from "./request-code.tsx";
import { loadRunDraft, saveRunDraft } from "./run-drafts.ts";
import { inputSchemaFor, messagesProperty, withMessage } from "./run-input.ts";
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

/**
 * The form for a new run. If the graph's input schema has messages, there is a field for a message. Other input has
 * fields generated from the schema; without a schema, it is entered as JSON.
 */
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
  const id = useId();
  const form = useRef<HTMLFormElement>(null);
  const [draft] = useState(() => loadRunDraft(draftKey));
  // Stored input is shown in the other fields, because it will be sent with the run.
  const [wanted, setOpen] = useState<boolean | null>(
    Object.keys(draft.input).length > 0 || draft.json !== undefined ? true : null,
  );
  const isOpen = wanted ?? !isCompact;
  const [chosen, setChosen] = useState<string | undefined>(draft.assistant);
  const [input, setInput] = useState<JsonRecord>(draft.input);
  const [text, setText] = useState(draft.text);
  const [isJsonWanted, setJsonWanted] = useState(draft.isJson);
  /**
   * The text that the user has typed as JSON. Undefined if there is none, or if it was valid and the input has been
   * entered otherwise since: text that is not valid is kept, because nothing else contains what the user typed.
   */
  const [json, setJson] = useState(draft.json);
  const latest = useRef({ input, json });
  latest.current = { input, json };
  /** Whether the unsent input is too large to be kept when the user leaves the page. */
  const [isTooLarge, setTooLarge] = useState(false);
  // A layout effect, because an ordinary effect would be lost if the user left the page before the next frame.
  useLayoutEffect(() => {
    setTooLarge(!saveRunDraft(draftKey, { text, input, json, assistant: chosen, isJson: isJsonWanted }));
  }, [draftKey, text, input, json, chosen, isJsonWanted]);
  const [settings, setSettings] = useState<RunSettings>({ strategy: "enqueue" });
  const hasSettings =
    settingsErrorOf(settings) !== undefined || Object.keys(runFieldsOf(settings, false)).length > 0;
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
  const keys = Object.keys(values).join();
  const schema = useMemo(
    () => (schemas.value === undefined ? null : inputSchemaFor(schemas.value, values)),
    [schemas.value, keys],
  );
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
  /** Whether the user has chosen another assistant, whose schema is not known yet. */
  const isSwitched = useRef(false);
  // The values for which the form of the new assistant has no fields are removed, because they would be sent unseen.
  useLayoutEffect(() => {
    if (!isSwitched.current) return;
    isSwitched.current = false;
    if (!isText) setInput((before) => pick(before, Object.keys(schema.properties ?? {})));
  }, [schemas.value]);
  const begin = () => {
    setInput({});
    setJson(undefined);
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
      if (latest.current.input === input && latest.current.json === json) {
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
          setFault(null);
          isSwitched.current = true;
          if (!isText) {
            validation.clear();
            setRound((before) => before + 1);
          }
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
  const jsonFault = isText || json === undefined ? null : inputTextFault(json);
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
            written={json}
            rows={3}
            placeholder={'{"messages": [{"role": "user", "content": "hello"}]}'}
            isStrict
            onChange={(value, typed) => {
              // The schema could not be read, so the input is entered as JSON. The form keeps this field even if a
              // later attempt reads the schema.
              if (schemas.error !== null) setJsonWanted(true);
              setJson(typed === "" ? undefined : typed);
              if (isJsonRecord(value)) setInput(value);
              else if (typed.trim() === "") setInput({});
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
            <Fields
              key={round}
              schema={rest}
              value={input}
              validation={validation}
              onChange={(changed) => {
                setInput(changed);
                if (jsonFault === null) setJson(undefined);
              }}
            />
          )}
        </>
      )}
      {jsonFault !== null && (
        <div class="note" role="status">
          <span>
            The text that you typed as JSON {jsonFault}. It is kept, but not sent: these fields are.
          </span>
          <span class="bar">
            <button
              type="button"
              onClick={() => {
                setOpen(true);
                setJsonWanted(true);
                validation.clear();
                requestAnimationFrame(() =>
                  form.current?.querySelector<HTMLElement>("textarea.code")?.focus(),
                );
              }}
            >
              Back to the JSON text
            </button>
            <button type="button" class="quiet" onClick={() => setJson(undefined)}>
              Discard the JSON text
            </button>
          </span>
        </div>
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
              if (!isJsonWanted && talk !== null && text.trim() !== "") {
                setInput(given);
                if (jsonFault === null) setJson(undefined);
              }
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

const NO_OBJECT = "The input must be a JSON object.";

/** Returns why a text cannot be an input; null if it is empty or a JSON object. */
function inputTextFault(text: string): string | null {
  const { value, wrong } = parseJsonText(text, true);
  if (wrong !== null) return "is not valid";
  return value === undefined || isJsonRecord(value) ? null : "is not an object";
}

const pick = (values: JsonRecord, names: readonly string[]): JsonRecord =>
  Object.fromEntries(Object.entries(values).filter(([name]) => names.includes(name)));

function without(schema: JsonSchema, name: string): JsonSchema {
  const { [name]: _, ...properties } = schema.properties ?? {};
  return { ...schema, properties };
}
