import { useEffect, useRef, useState } from "preact/hooks";

/** Milliseconds without a key press after which a typed filter is applied. */
const SETTLE_MS = 400;

interface DebouncedSearchFieldProps {
  readonly label: string;
  /** The type of the field. Default: `search`. */
  readonly type?: "search" | "datetime-local";
  /** The filter that is applied now, as in the address. */
  readonly value: string;
  readonly onSettle: (value: string) => void;
}

/** A field for a filter: a text or a time. Calls `onSettle` when the user pauses typing, or at once with Enter. */
export function DebouncedSearchField({ label, type = "search", value, onSettle }: DebouncedSearchFieldProps) {
  const [text, setText] = useState(value);
  /**
   * The filter that this field last reported or received. If `value` differs, the address was changed by something
   * else.
   */
  const known = useRef(value);
  const apply = (typed: string) => {
    if (typed.trim() === known.current) return;
    known.current = typed.trim();
    onSettle(known.current);
  };
  useEffect(() => {
    if (value === known.current) return;
    known.current = value;
    setText(value);
  }, [value]);
  useEffect(() => {
    const timer = setTimeout(() => apply(text), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const common = {
    "aria-label": label,
    value: text,
    onInput: ({ currentTarget }: { readonly currentTarget: HTMLInputElement }) =>
      setText(currentTarget.value),
    onKeyDown: ({ key }: KeyboardEvent) => key === "Enter" && apply(text),
  };
  return type === "search" ? (
    <input type="search" placeholder={label} {...common} />
  ) : (
    <input type="datetime-local" title={label} max="9999-12-31T23:59" {...common} />
  );
}
