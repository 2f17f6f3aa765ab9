import { useState } from "preact/hooks";
import { JsonField } from "../components/json-field.tsx";

interface Pair {
  readonly key: number;
  readonly name: string;
  readonly value: unknown;
}

/** Edits an object field by field, without a schema. */
export function KeyValueFields({ onChange }: { readonly onChange: (value: unknown) => void }) {
  const [pairs, setPairs] = useState<readonly Pair[]>([{ key: 0, name: "", value: undefined }]);
  const set = (next: readonly Pair[]) => {
    setPairs(next);
    const filled = next.filter(({ name, value }) => name !== "" && value !== undefined);
    onChange(
      filled.length === 0 ? undefined : Object.fromEntries(filled.map(({ name, value }) => [name, value])),
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
            onInput={({ currentTarget }) => change(key, { name: currentTarget.value })}
          />
          <JsonField
            id={`pair-${key}`}
            label={`Value of field ${i + 1}`}
            placeholder="text, true, 3, [..]"
            value={value}
            onChange={(given) => change(key, { value: given })}
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
      <button
        type="button"
        class="quiet"
        onClick={() =>
          set([
            ...pairs,
            { key: Math.max(-1, ...pairs.map(({ key }) => key)) + 1, name: "", value: undefined },
          ])
        }
      >
        + field
      </button>
    </div>
  );
}
