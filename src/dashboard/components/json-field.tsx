import { useId, useLayoutEffect, useState } from "preact/hooks";
import { findInexactNumber } from "./number-precision-check.ts";

interface JsonFieldProps {
  readonly id: string;
  readonly value: unknown;
  /** The initial text, such as invalid text that the user typed earlier. Default: `value` as text. */
  readonly written?: string | undefined;
  /** Called with the parsed value and the text. The value is undefined if the text is empty or invalid. */
  readonly onChange: (value: unknown, text: string) => void;
  readonly placeholder?: string;
  readonly rows?: number;
  readonly label?: string;
  /**
   * If true, all text that is not JSON is invalid. If false, only text that begins with `{`, `[` or `"` has to be JSON.
   */
  readonly isStrict?: boolean;
  /**
   * Called after each change with the reason why the text is invalid, or with null if it is valid. Also called at the
   * beginning if `written` is invalid.
   */
  readonly onWrong?: (why: string | null) => void;
  /** Whether the field does not show its error, because its parent does. */
  readonly isQuiet?: boolean;
  readonly "aria-required"?: boolean;
  readonly "aria-invalid"?: boolean;
  readonly "aria-describedby"?: string;
}

/** A text field for a JSON value. */
export function JsonField({
  id,
  value,
  written,
  onChange,
  placeholder = "",
  rows = 1,
  label,
  isStrict = false,
  onWrong,
  isQuiet = false,
  ...shared
}: JsonFieldProps) {
  const [text, setText] = useState(() => written ?? textOf(value, isStrict));
  const [wrong, setWrong] = useState<string | null>(() =>
    written === undefined ? null : parseJsonText(written, isStrict).wrong,
  );
  // Reports an invalid initial text. This is a layout effect, because the form must know before the next key press.
  useLayoutEffect(() => {
    if (wrong !== null) onWrong?.(wrong);
  }, []);
  const messageId = useId();
  const isTold = wrong !== null && !isQuiet;
  return (
    <>
      <textarea
        aria-describedby={isTold ? messageId : undefined}
        {...shared}
        id={id}
        class="code"
        rows={Math.max(rows, Math.min(12, text.split("\n").length))}
        spellcheck={false}
        value={text}
        placeholder={placeholder}
        aria-label={label}
        aria-invalid={wrong !== null || shared["aria-invalid"] === true}
        onInput={({ currentTarget }) => {
          setText(currentTarget.value);
          const found = parseJsonText(currentTarget.value, isStrict);
          setWrong(found.wrong);
          onChange(found.value, currentTarget.value);
          onWrong?.(found.wrong);
        }}
      />
      {isTold && (
        <p class="hint bad" role="alert" id={messageId}>
          {wrong}
        </p>
      )}
    </>
  );
}

const textOf = (value: unknown, isStrict: boolean): string =>
  value === undefined ? "" : typeof value === "string" && !isStrict ? value : JSON.stringify(value, null, 2);

/** Parses the text of a {@link JsonField}. `wrong`: why the text is invalid; null if it is valid or empty. */
export function parseJsonText(
  text: string,
  isStrict: boolean,
): { readonly value: unknown; readonly wrong: string | null } {
  if (text.trim() === "") return { value: undefined, wrong: null };
  try {
    const value = JSON.parse(text) as unknown;
    const fault = findInexactNumber(text);
    if (fault === null) return { value, wrong: null };
    return { value: undefined, wrong: `${fault}. To keep all digits, put it in quotes.` };
  } catch (cause) {
    // Text that begins with a bracket or a quote is meant to be JSON, so it is not taken as a string.
    if (!isStrict && !/^\s*[{["]/.test(text)) return { value: text, wrong: null };
    return { value: undefined, wrong: `Invalid JSON: ${(cause as Error).message}` };
  }
}
