import { useId, useState } from "preact/hooks";
import { isJson, type Json, type Schema } from "../api/records.ts";

interface FieldsProps {
  readonly schema: Schema;
  readonly value: Json;
  readonly onChange: (value: Json) => void;
}

/** A form made of a schema: a field for each of its properties. */
export function Fields({ schema, value, onChange }: FieldsProps) {
  const entries = Object.entries(schema.properties ?? {});
  const set = (name: string, inner: unknown) => {
    const { [name]: _, ...rest } = value;
    onChange(inner === undefined ? rest : { ...rest, [name]: inner });
  };
  return (
    <div class="fields">
      {entries.map(([name, inner]) => (
        <Field
          key={name}
          name={name}
          schema={inner}
          isRequired={schema.required?.includes(name) ?? false}
          value={value[name]}
          onChange={(given) => set(name, given)}
        />
      ))}
    </div>
  );
}

interface FieldProps {
  readonly name: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
}

/** The names of what has to be given and is not, with dots to what is within. */
export function missingIn(schema: Schema, value: unknown): readonly string[] {
  const plain = plainOf(schema);
  if (plain.properties === undefined) return value === undefined ? [plain.title ?? "the answer"] : [];
  const given = isJson(value) ? value : {};
  return Object.entries(plain.properties).flatMap(([name, inner]) => {
    const isThere = given[name] !== undefined;
    const isNeeded = (plain.required?.includes(name) ?? false) && inner.default === undefined;
    if (!isThere && !isNeeded) return [];
    return plainOf(inner).properties === undefined
      ? isThere
        ? []
        : [name]
      : missingIn(inner, given[name]).map((deeper) => `${name}.${deeper}`);
  });
}

export function Field({ name, schema, isRequired, value, onChange }: FieldProps) {
  const id = useId();
  const plain = plainOf(schema);
  const hint = schema.description;
  const shared = { id, "aria-required": isRequired };
  return (
    <div class="field">
      <label for={id}>
        {schema.title ?? name}
        {isRequired && <span class="dim"> (required)</span>}
      </label>
      {plain.enum !== undefined ? (
        <select
          {...shared}
          onChange={(event) => onChange(plain.enum?.[event.currentTarget.selectedIndex - 1])}
        >
          <option selected={value === undefined}>–</option>
          {plain.enum.map((one) => (
            <option key={String(one)} selected={one === value}>
              {String(one)}
            </option>
          ))}
        </select>
      ) : plain.type === "boolean" && isRequired && plain.default === undefined ? (
        // Nothing chosen is not "no".
        <div id={id} class="bar" role="radiogroup" aria-label={schema.title ?? name}>
          {[true, false].map((one) => (
            <label key={String(one)} class="inline">
              <input type="radio" name={id} checked={value === one} onChange={() => onChange(one)} />{" "}
              {one ? "yes" : "no"}
            </label>
          ))}
        </div>
      ) : plain.type === "boolean" ? (
        <input
          {...shared}
          type="checkbox"
          checked={(value ?? plain.default) === true}
          onChange={(event) => onChange(event.currentTarget.checked)}
        />
      ) : plain.type === "number" || plain.type === "integer" ? (
        <input
          {...shared}
          type="number"
          step={plain.type === "integer" ? 1 : "any"}
          value={value === undefined ? "" : String(value)}
          placeholder={plain.default === undefined ? "" : String(plain.default)}
          onInput={({ currentTarget }) =>
            onChange(currentTarget.value === "" ? undefined : currentTarget.valueAsNumber)
          }
        />
      ) : plain.type === "string" || typeof plain.default === "string" ? (
        <textarea
          {...shared}
          rows={typeof value === "string" ? Math.min(8, value.split("\n").length) : 1}
          value={typeof value === "string" ? value : ""}
          placeholder={typeof plain.default === "string" ? plain.default : ""}
          onInput={({ currentTarget }) =>
            onChange(currentTarget.value === "" ? undefined : currentTarget.value)
          }
        />
      ) : plain.type === "object" && plain.properties !== undefined ? (
        <fieldset id={id} aria-label={name}>
          <Fields schema={plain} value={isJson(value) ? value : {}} onChange={onChange} />
        </fieldset>
      ) : (
        <JsonField id={id} value={value} onChange={onChange} placeholder={placeholderOf(plain)} />
      )}
      {hint !== undefined && <p class="hint">{hint}</p>}
    </div>
  );
}

const placeholderOf = ({ type, default: initial }: Schema): string =>
  initial !== undefined
    ? JSON.stringify(initial)
    : type === "array"
      ? "[ ]"
      : type === "object"
        ? "{ }"
        : "text or JSON";

/** Of a choice between something and nothing, what is not nothing. */
function plainOf(schema: Schema): Schema {
  const some = schema.anyOf?.filter(({ type }) => type !== "null") ?? [];
  const one = some.length === 1 ? { ...schema, ...some[0] } : schema;
  const type = Array.isArray(one.type) ? one.type.find((name) => name !== "null") : one.type;
  return type === undefined ? one : { ...one, type: type as string };
}

interface JsonFieldProps {
  readonly id: string;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
  readonly placeholder?: string;
  readonly rows?: number;
  readonly label?: string;
  /** A text that is no JSON is refused, not taken as it stands. */
  readonly isStrict?: boolean;
  /** It has become none, where that is to be told apart from nothing. */
  readonly onWrong?: () => void;
}

/** JSON, or a text as it stands where it is none. */
export function JsonField({
  id,
  value,
  onChange,
  placeholder,
  rows = 1,
  label,
  isStrict = false,
  onWrong,
}: JsonFieldProps) {
  const [text, setText] = useState(() => textOf(value, isStrict));
  const [wrong, setWrong] = useState<string | null>(null);
  return (
    <>
      <textarea
        id={id}
        class="code"
        rows={Math.max(rows, Math.min(12, text.split("\n").length))}
        spellcheck={false}
        value={text}
        placeholder={placeholder ?? ""}
        aria-label={label}
        aria-invalid={wrong !== null}
        onInput={({ currentTarget }) => {
          setText(currentTarget.value);
          const found = parsed(currentTarget.value, isStrict);
          setWrong(found.wrong);
          if (found.wrong === null) onChange(found.value);
          else if (onWrong !== undefined) onWrong();
          else if (isStrict) onChange(undefined);
        }}
      />
      {wrong !== null && (
        <p class="hint bad" role="alert">
          {wrong}
        </p>
      )}
    </>
  );
}

const textOf = (value: unknown, isStrict: boolean): string =>
  value === undefined ? "" : typeof value === "string" && !isStrict ? value : JSON.stringify(value, null, 2);

function parsed(text: string, isStrict: boolean): { readonly value: unknown; readonly wrong: string | null } {
  if (text.trim() === "") return { value: undefined, wrong: null };
  try {
    return { value: JSON.parse(text) as unknown, wrong: null };
  } catch (cause) {
    // What begins like JSON is meant to be.
    if (!isStrict && !/^\s*[{["]/.test(text)) return { value: text, wrong: null };
    return { value: undefined, wrong: `No JSON yet: ${(cause as Error).message}` };
  }
}
