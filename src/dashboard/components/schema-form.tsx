import { useId, useState } from "preact/hooks";
import { isJsonRecord, type JsonRecord, type JsonSchema } from "../api/records.ts";
import type { FormValidation } from "./use-form-validation.ts";
import { NumberField } from "./number-field.tsx";
import { JsonField } from "./json-field.tsx";
import { simplifySchema, propertiesOf, joinFieldPath } from "./form-schema.ts";

interface FieldsProps {
  readonly schema: JsonSchema;
  readonly value: JsonRecord;
  readonly validation: FormValidation;
  /** The path of `value` within the form's value; empty for the whole value. */
  readonly at?: string;
  readonly onChange: (value: JsonRecord) => void;
}

/** A form generated from a JSON Schema: one field for each property. */
export function SchemaFields({ schema, value, validation, at = "", onChange }: FieldsProps) {
  const entries = Object.entries(simplifySchema(schema, validation.root).properties ?? {});
  const set = (name: string, inner: unknown) => {
    const { [name]: _, ...rest } = value;
    // Spreading the old value first keeps the order of the members.
    onChange(inner === undefined ? rest : { ...value, [name]: inner });
  };
  return (
    <div class="fields">
      {entries.map(([name, inner]) => (
        <SchemaField
          key={name}
          name={name}
          schema={inner}
          isRequired={schema.required?.includes(name) ?? false}
          // Without this check, a property named `constructor` would get the inherited function as its value.
          value={Object.hasOwn(value, name) ? value[name] : undefined}
          validation={validation}
          at={joinFieldPath(at, name)}
          onChange={(given) => set(name, given)}
        />
      ))}
    </div>
  );
}

interface FieldProps {
  readonly name: string;
  readonly schema: JsonSchema;
  readonly isRequired: boolean;
  readonly value: unknown;
  readonly validation: FormValidation;
  readonly at: string;
  readonly onChange: (value: unknown) => void;
}

export function SchemaField({ name, schema, isRequired, value, validation, at, onChange }: FieldProps) {
  const id = useId();
  const plain = simplifySchema(schema, validation.root);
  const properties = propertiesOf(plain, at);
  const fault = validation.errors.get(at);
  const wrong = fault !== undefined && (validation.isSubmitted || !fault.isMissing) ? fault.text : null;
  const hint = schema.description;
  // Not computed again when the value changes: the field would be replaced while the user types in it.
  const [unfit] = useState(() => unfitText(plain, properties !== undefined, value));
  const shared = {
    id,
    "aria-required": isRequired,
    "aria-invalid": wrong !== null,
    ...(wrong !== null && { "aria-describedby": `${id}-wrong` }),
  };
  return (
    <div class="field">
      <label for={id}>
        {schema.title ?? name}
        {isRequired && <span class="dim"> (required)</span>}
      </label>
      {unfit !== null ? (
        <JsonField
          {...shared}
          value={value}
          isStrict
          isQuiet
          onChange={onChange}
          onWrong={(why) => validation.onUnread(at, why)}
        />
      ) : plain.enum !== undefined ? (
        <select
          {...shared}
          onChange={(event) => onChange(plain.enum?.[event.currentTarget.selectedIndex - 1])}
        >
          <option selected={value === undefined}>–</option>
          {plain.enum.map((one) => (
            <option key={JSON.stringify(one)} selected={one === value}>
              {typeof one === "object" ? JSON.stringify(one) : String(one)}
            </option>
          ))}
        </select>
      ) : plain.type === "boolean" && typeof plain.default !== "boolean" ? (
        // Radio buttons instead of a checkbox, so that "not chosen yet" differs from "no".
        <div id={id} class="bar" role="radiogroup" aria-label={schema.title ?? name}>
          {(isRequired && plain.default === undefined ? REQUIRED_CHOICES : OPTIONAL_CHOICES).map(
            ([text, choice]) => (
              <label key={text} class="inline">
                <input
                  type="radio"
                  name={id}
                  checked={(value ?? undefined) === choice}
                  onChange={() => onChange(choice)}
                />{" "}
                {text}
              </label>
            ),
          )}
        </div>
      ) : plain.type === "boolean" ? (
        <input
          {...shared}
          type="checkbox"
          checked={(value ?? plain.default) === true}
          onChange={(event) => onChange(event.currentTarget.checked)}
        />
      ) : plain.type === "number" || plain.type === "integer" ? (
        <NumberField
          {...shared}
          value={value}
          placeholder={plain.default === undefined ? "" : String(plain.default)}
          onChange={onChange}
          onUnread={(why) => validation.onUnread(at, why)}
        />
      ) : plain.type === "string" ? (
        <textarea
          {...shared}
          rows={typeof value === "string" ? Math.min(8, value.split("\n").length) : 1}
          value={typeof value === "string" ? value : ""}
          placeholder={typeof plain.default === "string" ? plain.default : ""}
          onInput={({ currentTarget }) =>
            onChange(currentTarget.value === "" ? undefined : currentTarget.value)
          }
        />
      ) : properties !== undefined ? (
        <fieldset id={id} aria-label={name}>
          <SchemaFields
            schema={plain}
            value={isJsonRecord(value) ? value : {}}
            validation={validation}
            at={at}
            // An optional object becomes undefined when the user clears its last field.
            onChange={(given) => onChange(!isRequired && Object.keys(given).length === 0 ? undefined : given)}
          />
        </fieldset>
      ) : (
        <JsonField
          {...shared}
          value={value}
          placeholder={placeholderOf(plain)}
          isQuiet
          onChange={onChange}
          onWrong={(why) => validation.onUnread(at, why)}
        />
      )}
      {wrong !== null && (
        <p class="hint bad" role="alert" id={`${id}-wrong`}>
          {wrong}
        </p>
      )}
      {unfit !== null && <p class="hint">{unfit}</p>}
      {hint !== undefined && <p class="hint">{hint}</p>}
    </div>
  );
}

/**
 * Returns a text that says why the field for this schema cannot show a value, which is then shown as JSON; null if it
 * can. `hasFields`: whether the value's members have fields of their own.
 */
function unfitText({ type, enum: choices }: JsonSchema, hasFields: boolean, value: unknown): string | null {
  if (value === undefined || value === null) return null;
  if (choices !== undefined)
    return choices.includes(value) ? null : "The value is none of the choices, so it is shown as JSON.";
  const isFit = hasFields
    ? isJsonRecord(value)
    : type === "number" || type === "integer"
      ? typeof value === "number"
      : (type !== "string" && type !== "boolean") || typeof value === type;
  const kind = hasFields ? "object" : String(type);
  return isFit
    ? null
    : `The value is not ${/^[aio]/.test(kind) ? "an" : "a"} ${kind}, so it is shown as JSON.`;
}

/** The choices for a required boolean: text and value. */
const REQUIRED_CHOICES = [
  ["yes", true],
  ["no", false],
] as const;
const OPTIONAL_CHOICES = [["not set", undefined], ...REQUIRED_CHOICES] as const;

const placeholderOf = ({ type, default: initial }: JsonSchema): string =>
  initial !== undefined
    ? JSON.stringify(initial)
    : type === "array"
      ? "[ ]"
      : type === "object"
        ? "{ }"
        : "text or JSON";
