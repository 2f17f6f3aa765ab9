import { useState } from "preact/hooks";
import { isJsonRecord } from "../api/records.ts";

/** The number of members or elements that are shown before the user asks for more. */
const MAX_ENTRIES = 50;
/** The number of characters of a string that are shown before the user asks for more. */
const MAX_CHARACTERS = 600;

interface JsonProps {
  readonly value: unknown;
  readonly name?: string | undefined;
  /** The number of levels that are expanded initially. */
  readonly open?: number;
}

/** An expandable view of any JSON value. */
export function JsonTree({ value, name, open = 1 }: JsonProps) {
  if (Array.isArray(value) || isJsonRecord(value)) return <Branch value={value} name={name} open={open} />;
  return (
    <div class="json leaf">
      {name !== undefined && <span class="key">{name}: </span>}
      <Leaf value={value} />
    </div>
  );
}

function Branch({ value, name, open }: { value: object; name: string | undefined; open: number }) {
  const [isOpen, setOpen] = useState(open > 0);
  const [most, setMost] = useState(MAX_ENTRIES);
  const isList = Array.isArray(value);
  const entries = Object.entries(value);
  const sum = isList ? `[${entries.length}]` : entries.length === 0 ? "{}" : `{${entries.length}}`;
  if (entries.length === 0)
    return (
      <div class="json leaf">
        {name !== undefined && <span class="key">{name}: </span>}
        <span class="sum">{isList ? "[]" : "{}"}</span>
      </div>
    );
  return (
    <details class="json" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {name !== undefined && <span class="key">{name}: </span>}
        <span class="sum">{sum}</span>
        {!isOpen && <span class="preview"> {previewOf(value)}</span>}
      </summary>
      {isOpen && (
        <div class="inner">
          {entries.slice(0, most).map(([key, inner]) => (
            <JsonTree key={key} name={key} value={inner as unknown} open={open - 1} />
          ))}
          {entries.length > most && (
            <button type="button" class="quiet" onClick={() => setMost(most + 10 * MAX_ENTRIES)}>
              {entries.length - most} more…
            </button>
          )}
        </div>
      )}
    </details>
  );
}

function previewOf(value: object): string {
  const text = JSON.stringify(Array.isArray(value) ? value.slice(0, 5) : value) ?? "";
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}

function Leaf({ value }: { readonly value: unknown }) {
  const [isWhole, setWhole] = useState(false);
  if (typeof value !== "string") return <span class={`value ${typeof value}`}>{String(value)}</span>;
  if (value.length <= MAX_CHARACTERS || isWhole)
    return <span class="value string">{value === "" ? '""' : value}</span>;
  return (
    <span class="value string">
      {value.slice(0, MAX_CHARACTERS)}
      <button type="button" class="quiet" onClick={() => setWhole(true)}>
        … {value.length - MAX_CHARACTERS} more characters
      </button>
    </span>
  );
}
