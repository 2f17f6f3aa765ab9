import { useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { getAssistantSchemas } from "../api/client.ts";
import { type AssistantSchemas, isJsonRecord, type JsonRecord, type JsonSchema } from "../api/records.ts";
import { JsonField, parseJsonText } from "../components/json-field.tsx";
import { SchemaFields } from "../components/schema-form.tsx";
import { useFormValidation } from "../components/use-form-validation.ts";
import { type Resource, useResource } from "../components/use-resource.ts";
import { EMPTY_RUN_DRAFT, type RunInputDraft } from "./run-drafts.ts";
import { UnsentJsonNote } from "./unsent-json-note.tsx";
import { inputSchemaFor, messagesProperty, withMessage } from "./run-input.ts";

const NO_OBJECT = "The input must be a JSON object.";

/** Returns why a text cannot be an input; null if it is empty or a JSON object. */
function inputTextFault(text: string): string | null {
  const { value, wrong } = parseJsonText(text, true);
  if (wrong !== null) return "is not valid";
  return value === undefined || isJsonRecord(value) ? null : "is not an object";
}

/**
 * Returns whether a draft has text typed as JSON that cannot be an input. The text is then not sent: the values of the
 * fields are.
 */
const hasUnsentJson = ({ json }: Pick<RunInputDraft, "json">): boolean =>
  json !== undefined && inputTextFault(json) !== null;

/** Returns what remains of a draft after it was sent: the text typed as JSON if it was not sent, otherwise nothing. */
export const draftAfterSending = (draft: RunInputDraft): RunInputDraft =>
  hasUnsentJson(draft)
    ? { ...EMPTY_RUN_DRAFT, json: draft.json, assistant: draft.assistant }
    : EMPTY_RUN_DRAFT;

/** The input of a run while the user enters it, for the form around its fields. */
interface RunInputState extends Omit<RunInputDraft, "assistant"> {
  /** The schemas of the assistant; `value` is undefined until they are known. */
  readonly schemas: Resource<AssistantSchemas | undefined>;
  /** Whether the schemas have been read, or could not be, so that the fields can be shown. */
  readonly isKnown: boolean;
  /** Whether the input is entered as JSON: because the user wants to, or because the graph has no schema. */
  readonly isText: boolean;
  /** The name of the property of the input that takes messages; null if there is none. */
  readonly talk: string | null;
  /** The input of the request, with the message. */
  readonly given: JsonRecord;
  /** What is wrong with the input as a whole; null if nothing is. */
  readonly fault: string | null;
  /** Returns whether the input is valid. From now on, missing values are shown as errors. */
  validate(): boolean;
  /** Must be called when the user chooses another assistant. */
  onAssistantChosen(): void;
  /** Switches between fields and JSON. */
  toggleJson(): void;
  /**
   * Clears the input that was sent, but keeps invalid JSON text and what the user has entered since. Returns whether
   * the fields besides the message were cleared.
   */
  clearSent(): boolean;
  // The following members are only for `RunInputFields`.
  /** The schema of the input without the messages. */
  readonly rest: JsonSchema | null;
  readonly validation: ReturnType<typeof useFormValidation>;
  readonly isNoObject: boolean;
  /** What is wrong with the text typed as JSON, while the fields are shown in its place; null if nothing is. */
  readonly jsonFault: string | null;
  readonly round: number;
  readonly setText: (text: string) => void;
  readonly setInput: (input: JsonRecord) => void;
  readonly setJson: (json: string | undefined) => void;
  readonly setJsonWanted: (isJson: boolean) => void;
}

/**
 * Holds the input for a run of an assistant. `draft`: the initial input. `values`: the thread's state values, empty for
 * a new thread; null if they are not known, so that the form does not require what the state needs.
 */
export function useRunInput(
  assistant: string | undefined,
  draft: RunInputDraft,
  values: JsonRecord | null,
): RunInputState {
  const [input, setInput] = useState<JsonRecord>(draft.input);
  const [text, setText] = useState(draft.text);
  const [isJsonWanted, setJsonWanted] = useState(draft.isJson);
  /**
   * The text that the user has typed as JSON; undefined if there is none. Input in the fields replaces valid text.
   * Invalid text is kept, because `input` does not contain it.
   */
  const [json, setJson] = useState(draft.json);
  const latest = useRef({ input, json });
  latest.current = { input, json };
  /**
   * Rises whenever the fields must be created anew, as a part of their Preact keys. The assistant is not a part: when
   * the list of assistants arrives, it changes from a graph's name to an id, and the fields would lose their input.
   */
  const [round, setRound] = useState(0);
  const schemas = useResource(
    async () => (assistant === undefined ? undefined : getAssistantSchemas(assistant)),
    [assistant],
  );
  const keys = values === null ? null : Object.keys(values).join();
  const schema = useMemo(() => {
    if (schemas.value === undefined) return null;
    return values === null ? schemas.value.input_schema : inputSchemaFor(schemas.value, values);
  }, [schemas.value, keys]);
  const talk = messagesProperty(schema);
  const rest = useMemo(
    () => (schema === null || talk === null ? schema : without(schema, talk)),
    [schema, talk],
  );
  const isText = isJsonWanted || schema?.properties === undefined;
  const validation = useFormValidation(isText ? null : rest, input);
  const given = isJsonWanted || talk === null || text.trim() === "" ? input : withMessage(input, talk, text);
  /** Whether the user has chosen another assistant, whose schema is not known yet. */
  const isSwitched = useRef(false);
  // The values for which the form of the new assistant has no fields are removed, because they would be sent unseen.
  useLayoutEffect(() => {
    if (!isSwitched.current) return;
    isSwitched.current = false;
    if (!isText) setInput((before) => pick(before, Object.keys(schema.properties ?? {})));
  }, [schemas.value]);
  const jsonFault = isText || json === undefined ? null : inputTextFault(json);
  const isNoObject = validation.errors.get("")?.text === NO_OBJECT;
  return {
    text,
    input,
    json,
    isJson: isJsonWanted,
    schemas,
    isKnown: schemas.value !== undefined || schemas.error !== null,
    isText,
    talk,
    given,
    fault: isText && isNoObject ? NO_OBJECT : null,
    validate: () => validation.validate(),
    onAssistantChosen() {
      isSwitched.current = true;
      if (isText) return;
      validation.clear();
      setRound((before) => before + 1);
    },
    toggleJson() {
      if (!isJsonWanted && talk !== null && text.trim() !== "") {
        setInput(given);
        if (jsonFault === null) setJson(undefined);
      }
      setJsonWanted(!isJsonWanted);
      validation.clear();
    },
    clearSent() {
      setText((now) => (now === text ? "" : now));
      if (latest.current.input !== input || latest.current.json !== json) return false;
      setInput({});
      if (!hasUnsentJson({ json })) setJson(undefined);
      validation.clear();
      setRound((before) => before + 1);
      return true;
    },
    rest,
    validation,
    isNoObject,
    jsonFault,
    round,
    setText,
    setInput,
    setJson,
    setJsonWanted,
  };
}

interface FieldsProps {
  readonly entered: RunInputState;
  /** Whether other fields than the message are shown. */
  readonly isOpen?: boolean;
  /** Called when the user wants to see other fields than the message. */
  readonly onOpen?: () => void;
  /** Called if the user presses Enter in the field for the message. If absent, Enter begins a new line. */
  readonly onSend?: () => void;
}

/**
 * The fields for the input of a run. If the graph's input schema has messages, there is a field for a message. Other
 * input has fields generated from the schema; without a schema, it is entered as JSON.
 */
export function RunInputFields({ entered, isOpen = true, onOpen, onSend }: FieldsProps) {
  const id = useId();
  const { text, input, rest, round, validation, jsonFault, setInput, setJson } = entered;
  const hasFields = Object.keys(rest?.properties ?? {}).length > 0;
  if (!entered.isKnown) return null;
  if (entered.isText)
    return isOpen ? (
      <JsonField
        key={`json ${round}`}
        id={`${id}-json`}
        label="Input, as JSON"
        value={Object.keys(input).length === 0 ? undefined : input}
        written={entered.json}
        rows={3}
        placeholder={'{"messages": [{"role": "user", "content": "hello"}]}'}
        isStrict
        onChange={(value, typed) => {
          // If the schema could not be read, the user enters JSON. The form then keeps this field, even if a later
          // attempt reads the schema.
          if (entered.schemas.error !== null) entered.setJsonWanted(true);
          setJson(typed === "" ? undefined : typed);
          if (isJsonRecord(value)) setInput(value);
          else if (typed.trim() === "") setInput({});
          validation.onUnread("", value === undefined || isJsonRecord(value) ? null : NO_OBJECT);
        }}
        onWrong={(why) => why !== null && validation.onUnread("", why)}
        aria-invalid={entered.isNoObject}
      />
    ) : null;
  return (
    <>
      {entered.talk !== null && (
        <textarea
          id={`${id}-text`}
          class="message"
          aria-label="Message"
          placeholder={onSend === undefined ? "Type a message" : "Type a message (Enter to send)"}
          {...(onSend !== undefined && { title: "Shift+Enter for a new line" })}
          rows={Math.min(8, Math.max(1, text.split("\n").length))}
          value={text}
          onInput={({ currentTarget }) => entered.setText(currentTarget.value)}
          onKeyDown={(event) => {
            if (onSend === undefined || event.key !== "Enter" || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            if (text.trim() !== "") onSend();
          }}
        />
      )}
      {isOpen && entered.talk === null && !hasFields && (
        <p class="hint" role="status">
          The graph describes no fields for its input. If it needs an input, enter it as JSON.
        </p>
      )}
      {isOpen && rest !== null && hasFields && (
        <SchemaFields
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
      {jsonFault !== null && (
        <UnsentJsonNote
          fault={jsonFault}
          sent="these fields are"
          onBack={() => {
            onOpen?.();
            entered.setJsonWanted(true);
            validation.clear();
            requestAnimationFrame(() => document.getElementById(`${id}-json`)?.focus());
          }}
          onDiscard={() => setJson(undefined)}
        />
      )}
    </>
  );
}

const pick = (values: JsonRecord, names: readonly string[]): JsonRecord =>
  Object.fromEntries(Object.entries(values).filter(([name]) => names.includes(name)));

function without(schema: JsonSchema, name: string): JsonSchema {
  const { [name]: _, ...properties } = schema.properties ?? {};
  return { ...schema, properties };
}
