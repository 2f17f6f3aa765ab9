import { useState } from "preact/hooks";
import { JsonField } from "../components/json-field.tsx";

interface Pair {
  readonly key: number;
  readonly name: string;
  readonly value: unknown;
  /** Whether the field for the value contains invalid text. */
  readonly isWrong: boolean;
}

interface KeyValueProps {
  /** A name that no field may have, because the object gets it from elsewhere. */
  readonly reserved?: string;
  /**
   * Called with the object. It is undefined if no pair has both a name and a value, or if the text of a value is
   * invalid or a field has the reserved name (`isWrong`).
   */
  readonly onChange: (value: unknown, isWrong: boolean) => void;
}

const newPair = (key: number): Pair => ({ key, name: "", value: undefined, isWrong: false });

/** Edits an object as pairs of a name and a value, without a schema. */
export function KeyValueFields({ reserved, onChange }: KeyValueProps) {
  const [pairs, setPairs] = useState<readonly Pair[]>([newPair(0)]);
  const set = (next: readonly Pair[]) => {
    setPairs(next);
    const filled = next.filter(({ name, value }) => name !== "" && value !== undefined);
    const isWrong = next.some((pair) => pair.isWrong || pair.name === reserved);
    onChange(
      isWrong || filled.length === 0
        ? undefined
        : Object.fromEntries(filled.map(({ name, value }) => [name, value])),
      isWrong,
    );
  };
  const change = (key: number, part: Partial<Pair>) =>
    set(pairs.map((pair) => (pair.key === key ? { ...pair, ...part } : pair)));
  return (
    <div class="pairs">
      {pairs.map(({ key, name, value }, i) => (
        <div class="bar" key={key}>
          <input
            aria-label={`Name of field ${i + 1}`}
            placeholder="name"
            value={name}
            aria-invalid={name === reserved}
            onInput={({ currentTarget }) => change(key, { name: currentTarget.value })}
          />
          <JsonField
            id={`pair-${key}`}
            label={`Value of field ${i + 1}`}
            placeholder="text, true, 3, [..]"
            value={value}
            onChange={(given, text) =>
              change(key, { value: given, isWrong: given === undefined && text.trim() !== "" })
            }
          />
          <button
            type="button"
            class="quiet"
            aria-label={`Remove field ${i + 1}`}
            onClick={() => set(pairs.filter((pair) => pair.key !== key))}
          >
            ✕
          </button>
        </div>
      ))}
      {pairs.some(({ name }) => name === reserved) && (
        <p class="hint bad" role="alert">
          The name {reserved} is taken: the button gives its value.
        </p>
      )}
      <button
        type="button"
        class="quiet"
        onClick={() => set([...pairs, newPair(Math.max(-1, ...pairs.map(({ key }) => key)) + 1)])}
      >
        + field
      </button>
    </div>
  );
}
