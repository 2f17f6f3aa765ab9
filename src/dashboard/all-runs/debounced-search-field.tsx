import { useEffect, useRef, useState } from "preact/hooks";

/** Milliseconds without a key press after which a typed filter is applied. */
const SETTLE_MS = 400;

interface DebouncedSearchFieldProps {
  readonly label: string;
  /** The filter that is applied now, as in the address. */
  readonly value: string;
  readonly onSettle: (value: string) => void;
}

/** A text field for a filter. Calls `onSettle` when the user pauses typing, or at once with Enter. */
export function DebouncedSearchField({ label, value, onSettle }: DebouncedSearchFieldProps) {
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
  return (
    <input
      type="search"
      aria-label={label}
      placeholder={label}
      value={text}
      onInput={({ currentTarget }) => setText(currentTarget.value)}
      onKeyDown={({ key }) => key === "Enter" && apply(text)}
    />
  );
}
