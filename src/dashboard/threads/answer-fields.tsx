import { useId, useState } from "preact/hooks";
import { isJsonRecord, type JsonSchema } from "../api/records.ts";
import {
  missingFieldPaths,
  useFormValidation,
  useReportBeforeNextEvent,
} from "../components/use-form-validation.ts";
import { simplifySchema } from "../components/form-schema.ts";
import { SchemaField, SchemaFields } from "../components/schema-form.tsx";
import { JsonField } from "../components/json-field.tsx";
import { type AnswerFault, answerFaultText } from "../live/answer-requests.ts";
import { KeyValueFields } from "./key-value-fields.tsx";
import type { AnswerChoice } from "./suggested-answer-method.ts";

/** The labels of the input methods for an answer. */
export const ANSWER_METHOD_LABELS = {
  event: "Event",
  choice: "Choices",
  form: "Form",
  action: "Actions",
  fields: "Key-value",
  text: "Text",
  yes: "Yes / no",
  json: "JSON",
} as const;
export type AnswerMethod = keyof typeof ANSWER_METHOD_LABELS;

interface AnswerProps {
  readonly onChange: (answer: unknown) => void;
}

/** A field for an answer that is a text. Enter sends the answer; Shift+Enter begins a new line. */
export function TextAnswer({ onChange }: AnswerProps) {
  const [rows, setRows] = useState(1);
  return (
    <textarea
      rows={rows}
      aria-label="Answer"
      placeholder="Your answer (Enter to send)"
      title="Shift+Enter for a new line"
      onInput={({ currentTarget: { value } }) => {
        setRows(Math.min(8, value.split("\n").length));
        onChange(value === "" ? undefined : value);
      }}
      onKeyDown={(event) => {
        if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
        event.preventDefault();
        event.currentTarget.form?.requestSubmit();
      }}
    />
  );
}

export function YesNoAnswer({ onChange }: AnswerProps) {
  const id = useId();
  return (
    <div class="bar" role="radiogroup" aria-label="Answer">
      {[true, false].map((one) => (
        <label key={String(one)}>
          <input type="radio" name={id} onChange={() => onChange(one)} /> {one ? "yes (true)" : "no (false)"}
        </label>
      ))}
    </div>
  );
}

/** Up to this number of choices, each is shown as a button. */
const MAX_CHOICES = 8;

const YES_AND_NO: readonly AnswerChoice[] = [
  { label: "Yes", value: true },
  { label: "No", value: false },
];

/**
 * Returns the values that a schema allows, as choices; those of a boolean are Yes and No. Null if the schema lists no
 * values, or more than {@link MAX_CHOICES}.
 */
export function schemaChoicesOf(schema: JsonSchema | null): readonly AnswerChoice[] | null {
  const { type, enum: values } = simplifySchema(schema ?? {}, schema ?? {});
  if (values === undefined) return type === "boolean" ? YES_AND_NO : null;
  return values.length <= MAX_CHOICES ? values.map(choiceFor) : null;
}

const choiceFor = (value: unknown): AnswerChoice =>
  YES_AND_NO.find((one) => one.value === value) ?? {
    label: typeof value === "string" ? value : JSON.stringify(value),
    value,
  };

interface ChoiceButtonsProps extends AnswerProps {
  readonly choices: readonly AnswerChoice[];
}

export function ChoiceButtons({ choices, onChange }: ChoiceButtonsProps) {
  /**
   * The chosen value, as JSON. Each read of the question creates new objects, so the values themselves cannot be
   * compared.
   */
  const [chosen, setChosen] = useState<string | null>(null);
  return (
    <div class="ways" role="group" aria-label="Answer">
      {choices.map(({ label, value }) => {
        const key = JSON.stringify(value);
        return (
          <button
            key={key}
            type="button"
            aria-pressed={chosen === key}
            onClick={() => {
              setChosen(key);
              onChange(value);
            }}
          >
            {label}
          </button>
        );
      })}
    </div>
  );
}

interface JsonAnswerProps extends AnswerProps {
  /** The faults of the answer that was sent last. */
  readonly faults?: readonly AnswerFault[];
  /** Called after each change with the reason why the text is not JSON; null if it is, or if it is empty. */
  readonly onWrong: (why: string | null) => void;
}

export function JsonAnswer({ onChange, faults = [], onWrong }: JsonAnswerProps) {
  const id = useId();
  return (
    <>
      <JsonField
        id={id}
        label="Answer, as JSON"
        value={undefined}
        rows={2}
        placeholder={'{"ok": true}'}
        isStrict
        onChange={onChange}
        onWrong={onWrong}
        aria-invalid={faults.length > 0}
        {...(faults.length > 0 && { "aria-describedby": `${id}-faults` })}
      />
      {faults.length > 0 && <FaultLines id={`${id}-faults`} faults={faults} />}
    </>
  );
}

/** Shows the faults of an answer, one on each line. */
export const FaultLines = ({ id, faults }: { id?: string; faults: readonly AnswerFault[] }) => (
  <p class="hint bad faults" role="alert" id={id}>
    {faults.map(answerFaultText).join("\n")}
  </p>
);

export const KeyValueAnswer = KeyValueFields;

interface FormAnswerProps extends AnswerProps {
  readonly schema: JsonSchema;
  readonly value: unknown;
  /** Called with the form's value after each change, even if it is incomplete. */
  readonly onEnter: (value: unknown) => void;
}

/**
 * A form generated from the schema of a question's answer. `onChange` gets the answer when it is complete, otherwise
 * undefined.
 */
export function FormAnswer({ schema, value, onEnter, onChange }: FormAnswerProps) {
  const validation = useFormValidation(schema, value);
  const isWhole = value !== undefined || schema.properties !== undefined;
  const { size } = validation.errors;
  useReportBeforeNextEvent(() => {
    onChange(size === 0 && isWhole ? (value ?? {}) : undefined);
  }, [value, size, isWhole]);
  if (schema.properties === undefined)
    return (
      <SchemaField
        name="Answer"
        at=""
        schema={schema}
        isRequired
        value={value}
        validation={validation}
        onChange={onEnter}
      />
    );
  const missing = missingFieldPaths(validation.errors.values()).map(
    (name) => schema.properties?.[name]?.title ?? name,
  );
  return (
    <>
      <SchemaFields
        schema={schema}
        value={isJsonRecord(value) ? value : {}}
        validation={validation}
        onChange={onEnter}
      />
      {missing.length > 0 && <p class="hint">Missing: {missing.join(", ")}.</p>}
    </>
  );
}
