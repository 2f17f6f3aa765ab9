import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { getAssistantSchemas } from "../api/client.ts";
import { isJsonRecord, type JsonRecord, type JsonSchema } from "../api/records.ts";
import { SchemaFields } from "../components/schema-form.tsx";
import { useFormValidation, useReportBeforeNextEvent } from "../components/use-form-validation.ts";
import { useResource } from "../components/use-resource.ts";

interface AssistantContextFieldsProps {
  /** The name of the graph whose schema describes the context. */
  readonly graph: string;
  readonly value: unknown;
  readonly onChange: (value: JsonRecord) => void;
  /** Called with the reason why the context does not match the graph's schema, or with null if it matches. */
  readonly onFault: (fault: string | null) => void;
  /** The JSON field, shown if the context cannot be edited as a form. */
  readonly children: ComponentChildren;
}

/** Edits an assistant's context: as a form if the graph has a schema for its context, otherwise as JSON. */
export function AssistantContextFields(props: AssistantContextFieldsProps) {
  const { graph, children } = props;
  const { value: schemas, isReading } = useResource(
    async () => (graph === "" ? undefined : getAssistantSchemas(graph)),
    [graph],
  );
  const { properties } = schemas?.context_schema ?? {};
  // Nothing is required, because a run may set what its assistant leaves out.
  const schema = useMemo(() => properties && { ...schemas?.context_schema, required: [] }, [properties]);
  if (isReading)
    return (
      <p class="dim" aria-busy="true">
        Reading…
      </p>
    );
  if (schema === undefined) return <div class="field">{children}</div>;
  // Graphs of LangGraph.js have one schema for both. They may read the one or the other.
  return <DescribedContext {...props} schema={schema} isConfigToo={schemas?.config_schema !== null} />;
}

function DescribedContext({
  graph,
  schema,
  value,
  onChange,
  onFault,
  children,
  isConfigToo,
}: AssistantContextFieldsProps & {
  readonly schema: JsonSchema;
  /** Whether the schema is also that of the graph's `config.configurable`. */
  readonly isConfigToo: boolean;
}) {
  const validation = useFormValidation(schema, value);
  const names = Object.keys(schema.properties ?? {});
  const context = isJsonRecord(value) ? value : {};
  const unknown = Object.keys(context).filter((name) => !names.includes(name));
  // The context is edited as JSON if it has members that the schema does not name, because a form would hide them.
  const isForm = useMemo(() => unknown.length === 0, [schema]);
  const wrong = [...validation.errors.values()].find(({ isMissing }) => !isMissing);
  const fault = wrong === undefined ? null : `${wrong.at} ${wrong.text}`.trim();
  useReportBeforeNextEvent(() => {
    onFault(fault);
    return () => onFault(null);
  }, [fault]);
  if (isForm)
    return (
      <fieldset>
        <legend>Context</legend>
        <SchemaFields schema={schema} value={context} validation={validation} onChange={onChange} />
        {isConfigToo && (
          <p class="hint">
            Nodes read these values as <code>runtime.context</code>. If the graph reads them as{" "}
            <code>config.configurable</code>, enter them under Config, in “configurable”.
          </p>
        )}
      </fieldset>
    );
  return (
    <div class="field">
      {children}
      {fault !== null && isJsonRecord(value) && (
        <p class="hint bad" role="alert">
          {fault}
        </p>
      )}
      {unknown.length > 0 && (
        <p class="hint" role="status">
          {graph} does not describe {unknown.map((name) => `“${name}”`).join(", ")} in its context. It
          describes {names.map((name) => `“${name}”`).join(", ")}.
        </p>
      )}
    </div>
  );
}
