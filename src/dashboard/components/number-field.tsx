import { useState } from "preact/hooks";
import { inexactNumberFault } from "./number-precision-check.ts";

interface NumberFieldProps {
  readonly id: string;
  readonly value: unknown;
  readonly placeholder: string;
  /** Called after each change; undefined if the field is empty or its text is not a number. */
  readonly onChange: (value: number | undefined) => void;
  /** Called after each change with the reason why the text is not a usable number; null if it is one, or empty. */
  readonly onUnread: (why: string | null) => void;
  readonly "aria-required"?: boolean;
  readonly "aria-invalid"?: boolean;
  readonly "aria-describedby"?: string;
}

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

interface ParsedNumber {
  readonly value: number | undefined;
  readonly fault: string | null;
}

function parseNumber(text: string): ParsedNumber {
  const trimmed = text.trim();
  if (trimmed === "") return { value: undefined, fault: null };
  if (!NUMBER.test(trimmed)) return { value: undefined, fault: "must be a number" };
  const fault = inexactNumberFault(trimmed);
  return { value: fault === null ? Number(trimmed) : undefined, fault };
}

/**
 * A field for a number. It is a field for text: `<input type="number">` changes its number when the mouse wheel turns,
 * drops characters such as a decimal comma without a word, and does not tell the text in it, so that writing back the
 * number of "1." would remove the point while the user is typing.
 */
export function NumberField({ value, placeholder, onChange, onUnread, ...shared }: NumberFieldProps) {
  const [typed, setTyped] = useState("");
  const given = typeof value === "number" ? value : undefined;
  // The text stays as it was typed unless the form has another value since.
  const text = parseNumber(typed).value === given ? typed : given === undefined ? "" : String(given);
  return (
    <input
      {...shared}
      type="text"
      inputMode="decimal"
      autoComplete="off"
      value={text}
      placeholder={placeholder}
      onInput={({ currentTarget }) => {
        const parsed = parseNumber(currentTarget.value);
        setTyped(currentTarget.value);
        onUnread(parsed.fault);
        onChange(parsed.value);
      }}
    />
  );
}
