import { useState } from "preact/hooks";
import { inexactNumberFault } from "./number-precision-check.ts";

interface NumberFieldProps {
  readonly id: string;
  readonly value: unknown;
  readonly placeholder: string;
  /** Called after each change; undefined if the field is empty or its text is not a number. */
  readonly onChange: (value: number | undefined) => void;
  /** Called after each change with the reason why the text is not a usable number; null if it is usable or empty. */
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
 * A text field for a number. `<input type="number">` would change the number when the mouse wheel turns, and would not
 * let the page read an unfinished text such as `1.`.
 */
export function NumberField({ value, placeholder, onChange, onUnread, ...shared }: NumberFieldProps) {
  const [typed, setTyped] = useState("");
  const given = typeof value === "number" ? value : undefined;
  // Keeps the text as it was typed, unless the form has since set another value.
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
