import { useRef, useState } from "preact/hooks";
import type { AssistantFields } from "../api/client.ts";
import { type Assistant, isJsonRecord, type JsonRecord } from "../api/records.ts";
import { useReportBeforeNextEvent } from "../components/use-form-validation.ts";
import { changedMetadata } from "../components/changed-metadata.ts";
import { FormFooter } from "../components/form-footer.tsx";
import { JsonField } from "../components/json-field.tsx";
import { useSubmit } from "../components/use-submit.ts";
import { AssistantContextFields } from "./assistant-context-fields.tsx";
import { differingMembers } from "./differing-members.ts";

interface FormProps {
  /** The assistant to edit; null for a new assistant. */
  readonly assistant: Assistant | null;
  readonly graphs: readonly string[];
  /** Called with the changed fields when the user saves the form. */
  readonly onSave: (fields: AssistantFields) => Promise<void>;
  /** Called with true when the form has unsaved changes, and with false when it has none or is being saved. */
  readonly onEdit?: (isEdited: boolean) => void;
}

const OBJECTS = [
  ["config", "Config", '{"configurable": {"model": "small"}}'],
  ["context", "Context", '{"model": "small"}'],
  ["metadata", "Metadata", '{"team": "support"}'],
] as const;

/** The members of an assistant's config that the server reads. */
const CONFIG_MEMBERS = new Set(["configurable", "tags", "recursion_limit"]);

/** Returns the names of the members of a config that the server ignores. */
const unreadMembersOf = (config: unknown): readonly string[] =>
  isJsonRecord(config) ? Object.keys(config).filter((name) => !CONFIG_MEMBERS.has(name)) : [];

/** The form for an assistant's settings. */
export function AssistantForm({ assistant, graphs, onSave, onEdit }: FormProps) {
  const submit = useSubmit();
  const before = {
    name: assistant?.name ?? "",
    description: assistant?.description ?? "",
    graph_id: assistant?.graph_id ?? graphs[0] ?? "",
    ...(Object.fromEntries(OBJECTS.map(([field]) => [field, assistant?.[field] ?? {}])) as JsonRecord),
  };
  const [fields, setFields] = useState(before);
  const change = (changed: JsonRecord) => setFields((last) => ({ ...last, ...changed }));
  const changed = differingMembers(before, fields);
  const isEdited = changed.length > 0;
  const isUnsent = isEdited && !submit.isSending;
  useReportBeforeNextEvent(() => onEdit?.(isUnsent), [isUnsent]);
  const isDefault = assistant?.metadata["created_by"] === "system";
  const contextFault = useRef<string | null>(null);
  const unread = unreadMembersOf((fields as JsonRecord)["config"]);
  const save = async () => {
    for (const [field, label] of OBJECTS)
      if (!isJsonRecord((fields as JsonRecord)[field]))
        throw new Error(`${label} must be an object, as JSON.`);
    if (contextFault.current !== null) throw new Error(`Context: ${contextFault.current}.`);
    const sent = assistant === null ? ["graph_id", ...changed] : changed;
    const metadata = changedMetadata(
      assistant?.metadata ?? {},
      (fields as JsonRecord)["metadata"] as JsonRecord,
    );
    const values: JsonRecord = { ...fields, metadata };
    await onSave(Object.fromEntries(sent.map((name) => [name, values[name]])));
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
        <input
          required
          value={fields.name}
          onInput={({ currentTarget }) => change({ name: currentTarget.value })}
        />
      </label>
      <label class="field">
        <span>Description</span>
        <input
          value={fields.description}
          onInput={({ currentTarget }) => change({ description: currentTarget.value })}
        />
      </label>
      <label class="field">
        <span>Graph</span>
        <select
          value={fields.graph_id}
          disabled={isDefault}
          aria-describedby={isDefault ? "graph-hint" : undefined}
          onChange={({ currentTarget }) => change({ graph_id: currentTarget.value })}
        >
          {graphs.map((one) => (
            <option key={one} value={one} selected={one === fields.graph_id}>
              {one}
            </option>
          ))}
        </select>
      </label>
      {isDefault && (
        <p class="hint" id="graph-hint">
          This is the assistant of its graph: requests that name the graph use it. Create another assistant
          for another graph.
        </p>
      )}
      {OBJECTS.map(([field, label, placeholder]) => {
        const json = (
          <JsonField
            id={`assistant-${field}`}
            value={Object.keys(assistant?.[field] ?? {}).length === 0 ? undefined : assistant?.[field]}
            placeholder={placeholder}
            isStrict
            onChange={(value, text) => change({ [field]: text.trim() === "" ? {} : value })}
          />
        );
        if (field === "context")
          return (
            <AssistantContextFields
              key={`${field} ${fields.graph_id}`}
              graph={fields.graph_id}
              value={(fields as JsonRecord)[field]}
              onChange={(context) => change({ context })}
              onFault={(fault) => (contextFault.current = fault)}
            >
              <label for={`assistant-${field}`}>{label}</label>
              {json}
            </AssistantContextFields>
          );
        return (
          <div key={field} class="field">
            <label for={`assistant-${field}`}>{label}</label>
            {json}
            {field === "config" && unread.length > 0 && (
              <p class="hint" role="status">
                {unread.map((name) => `“${name}”`).join(", ")} {unread.length === 1 ? "is" : "are"} ignored.
                Only “configurable”, “tags” and “recursion_limit” are read; put graph settings in
                “configurable”.
              </p>
            )}
            {field === "metadata" && assistant !== null && (
              <p class="hint">Metadata fields can be added and replaced, but not deleted.</p>
            )}
          </div>
        );
      })}
      <FormFooter
        submit={submit}
        isUnchanged={assistant !== null && !isEdited}
        words={assistant === null ? "Create assistant" : "Save as new version"}
      />
    </form>
  );
}
