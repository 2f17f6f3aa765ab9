import { useId } from "preact/hooks";
import { isJson, type Json, type Schema } from "../api/records.ts";
import { Field, Fields, JsonField, missingIn } from "../parts/form.tsx";
import { Pairs } from "./pairs.tsx";

/** How an answer is given. */
export const WAYS = {
  form: "Form",
  action: "Actions",
  fields: "Fields",
  text: "Text",
  yes: "Yes / no",
  json: "JSON",
} as const;
export type Way = keyof typeof WAYS;

interface WayProps {
  readonly onChange: (answer: unknown) => void;
}

export function TextWay({ onChange }: WayProps) {
  return (
    <textarea
      rows={2}
      aria-label="Answer"
      onInput={({ currentTarget: { value } }) => onChange(value === "" ? undefined : value)}
    />
  );
}

export function YesWay({ onChange }: WayProps) {
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

export function JsonWay({ onChange }: WayProps) {
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

export const FieldsWay = Pairs;

interface FormWayProps extends WayProps {
  readonly schema: Schema;
  readonly value: unknown;
  /** What has been entered, whole or not. */
  readonly onEnter: (value: unknown) => void;
}

/** A form made of the schema that the graph gave with its question. */
export function FormWay({ schema, value, onEnter, onChange }: FormWayProps) {
  const enter = (next: unknown) => {
    onEnter(next);
    onChange(missingIn(schema, next).length === 0 ? next : undefined);
  };
  if (schema.properties === undefined)
    return <Field name="Answer" schema={schema} isRequired value={value} onChange={enter} />;
  const entered: Json = isJson(value) ? value : {};
  const missing = missingIn(schema, entered);
  return (
    <>
      <Fields schema={schema} value={entered} onChange={enter} />
      {missing.length > 0 && <p class="hint">Still to be filled in: {missing.join(", ")}.</p>}
    </>
  );
}
