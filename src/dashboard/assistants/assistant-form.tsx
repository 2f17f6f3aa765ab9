import { useState } from "preact/hooks";
import type { AssistantFields } from "../api/client.ts";
import { type Assistant, isJsonRecord } from "../api/records.ts";
import { FormFooter } from "../components/form-footer.tsx";
import { JsonField } from "../components/json-field.tsx";
import { useSubmit } from "../components/use-submit.ts";

interface FormProps {
  /** Null: a new assistant. */
  readonly assistant: Assistant | null;
  readonly graphs: readonly string[];
  readonly onSave: (fields: AssistantFields) => Promise<void>;
}

const OBJECTS = [
  ["config", "Config", '{"configurable": {"model": "small"}}'],
  ["context", "Context", '{"model": "small"}'],
  ["metadata", "Metadata", '{"team": "support"}'],
] as const;

/** The form for an assistant's settings. */
export function AssistantForm({ assistant, graphs, onSave }: FormProps) {
  const submit = useSubmit();
  const [name, setName] = useState(assistant?.name ?? "");
  const [description, setDescription] = useState(assistant?.description ?? "");
  const [graph, setGraph] = useState(assistant?.graph_id ?? graphs[0] ?? "");
  const [objects, setObjects] = useState<Readonly<Record<string, unknown>>>(() =>
    Object.fromEntries(OBJECTS.map(([field]) => [field, assistant?.[field] ?? {}])),
  );
  const save = async () => {
    for (const [field, label] of OBJECTS)
      if (!isJsonRecord(objects[field])) throw new Error(`${label} must be an object, as JSON.`);
    await onSave({ name, description, graph_id: graph, ...objects });
  };
  return (
    <form
      class="card fields"
      aria-label="Settings of the assistant"
      onSubmit={(event) => {
        event.preventDefault();
        submit.start(save);
      }}
    >
      <label class="field">
        <span>Name</span>
        <input required value={name} onInput={({ currentTarget }) => setName(currentTarget.value)} />
      </label>
      <label class="field">
        <span>Description</span>
        <input value={description} onInput={({ currentTarget }) => setDescription(currentTarget.value)} />
      </label>
      <label class="field">
        <span>Graph</span>
        <select value={graph} onChange={({ currentTarget }) => setGraph(currentTarget.value)}>
          {graphs.map((one) => (
            <option key={one} value={one} selected={one === graph}>
              {one}
            </option>
          ))}
        </select>
      </label>
      {OBJECTS.map(([field, label, placeholder]) => (
        <div key={field} class="field">
          <label for={`assistant-${field}`}>{label}</label>
          <JsonField
            id={`assistant-${field}`}
            value={Object.keys(assistant?.[field] ?? {}).length === 0 ? undefined : assistant?.[field]}
            placeholder={placeholder}
            isStrict
            onChange={(value, text) =>
              setObjects((before) => ({ ...before, [field]: text.trim() === "" ? {} : value }))
            }
          />
          {field === "metadata" && assistant !== null && (
            <p class="hint">Members are added and replaced; those that are left out stay.</p>
          )}
        </div>
      ))}
      <FormFooter
        submit={submit}
        words={assistant === null ? "Make the assistant" : "Save as a new version"}
      />
    </form>
  );
}
