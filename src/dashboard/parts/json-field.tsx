import { useId, useState } from "preact/hooks";

interface JsonFieldProps {
  readonly id: string;
  readonly value: unknown;
  /** What was written here before, where that is not what `value` says. */
  readonly written?: string | undefined;
  /** The value is undefined, too, while the text is none. */
  readonly onChange: (value: unknown, text: string) => void;
  readonly placeholder?: string;
  readonly rows?: number;
  readonly label?: string;
  /** A text that is no JSON is refused, not taken as it stands. */
  readonly isStrict?: boolean;
  /** Why it is none, told after each change; null: it is one. */
  readonly onWrong?: (why: string | null) => void;
  /** Whoever asks why it is none tells that, too. */
  readonly isQuiet?: boolean;
  readonly "aria-required"?: boolean;
  readonly "aria-invalid"?: boolean;
  readonly "aria-describedby"?: string;
}

/** JSON, or a text as it stands where it is none. */
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
  const [wrong, setWrong] = useState<string | null>(null);
  const told = useId();
  const isTold = wrong !== null && !isQuiet;
  return (
    <>
      <textarea
        aria-describedby={isTold ? told : undefined}
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
          const found = parsed(currentTarget.value, isStrict);
          setWrong(found.wrong);
          onChange(found.value, currentTarget.value);
          onWrong?.(found.wrong);
        }}
      />
      {isTold && (
        <p class="hint bad" role="alert" id={told}>
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
