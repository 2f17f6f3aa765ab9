import { useId, useState } from "preact/hooks";
import { isJsonRecord, type JsonSchema } from "../api/records.ts";
import { missingValues, useFormValidation, useReport } from "../components/use-form-validation.ts";
import { simplifySchema } from "../components/form-schema.ts";
import { Field, Fields } from "../components/schema-form.tsx";
import { JsonField } from "../components/json-field.tsx";
import { KeyValueFields } from "./key-value-fields.tsx";

/** The input methods for an answer. */
export const ANSWER_METHODS = {
  event: "Events",
  choice: "Choices",
  form: "Form",
  action: "Actions",
  fields: "Fields",
  text: "Text",
  yes: "Yes / no",
  json: "JSON",
} as const;
export type AnswerMethod = keyof typeof ANSWER_METHODS;

interface AnswerProps {
  readonly onChange: (answer: unknown) => void;
}

export function TextAnswer({ onChange }: AnswerProps) {
  return (
    <textarea
      rows={2}
      aria-label="Answer"
      onInput={({ currentTarget: { value } }) => onChange(value === "" ? undefined : value)}
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

/** The largest number of choices that are shown as buttons. */
const MAX_CHOICES = 8;

/**
 * Returns the values that a schema offers as choices; null if there are too many of them, or the schema offers none.
 */
export function choicesOf(schema: JsonSchema | null): readonly unknown[] | null {
  const { type, enum: choices } = simplifySchema(schema ?? {}, schema ?? {});
  if (choices !== undefined) return choices.length <= MAX_CHOICES ? choices : null;
  return type === "boolean" ? [true, false] : null;
}

const CHOICE_LABELS = new Map<unknown, string>([
  [true, "Yes"],
  [false, "No"],
]);

/** A button for each choice. */
export function ChoiceButtons({ choices, onChange }: AnswerProps & { readonly choices: readonly unknown[] }) {
  const [chosen, setChosen] = useState<unknown>(undefined);
  return (
    <div class="ways" role="group" aria-label="Answer">
      {choices.map((one) => (
        <button
          key={JSON.stringify(one)}
          type="button"
          aria-pressed={chosen === one}
          onClick={() => {
            setChosen(one);
            onChange(one);
          }}
        >
          {CHOICE_LABELS.get(one) ?? (typeof one === "string" ? one : JSON.stringify(one))}
        </button>
      ))}
    </div>
  );
}

export function JsonAnswer({ onChange }: AnswerProps) {
  const id = useId();
  return (
    <JsonField
      id={id}
      label="Answer, as JSON"
      value={undefined}
      rows={2}
      placeholder={'{"ok": true}'}
      isStrict
      onChange={onChange}
    />
  );
}

export const KeyValueAnswer = KeyValueFields;

interface FormAnswerProps extends AnswerProps {
  readonly schema: JsonSchema;
  readonly value: unknown;
  /** Called with the input, complete or not. */
  readonly onEnter: (value: unknown) => void;
}

/** A form generated from the schema that the graph supplied with its question. */
export function FormAnswer({ schema, value, onEnter, onChange }: FormAnswerProps) {
  const validation = useFormValidation(schema, value);
  const isWhole = value !== undefined || schema.properties !== undefined;
  const { size } = validation.errors;
  useReport(() => {
    onChange(size === 0 && isWhole ? (value ?? {}) : undefined);
  }, [value, size, isWhole]);
  if (schema.properties === undefined)
    return (
      <Field
        name="Answer"
        at=""
        schema={schema}
        isRequired
        value={value}
        validation={validation}
        onChange={onEnter}
      />
    );
  const missing = missingValues(validation.errors.values()).map(
    (name) => schema.properties?.[name]?.title ?? name,
  );
  return (
    <>
      <Fields
        schema={schema}
        value={isJsonRecord(value) ? value : {}}
        validation={validation}
        onChange={onEnter}
      />
      {missing.length > 0 && <p class="hint">Missing: {missing.join(", ")}.</p>}
    </>
  );
}
