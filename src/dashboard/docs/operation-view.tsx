import type { Content, OpenApi, Parameter, LocatedOperation } from "./openapi.ts";
import { curlOfOperation, schemaLimitsText, schemaTypeText } from "./openapi.ts";
import { SchemaView } from "./schema-view.tsx";

interface OperationViewProps {
  readonly api: OpenApi;
  readonly placed: LocatedOperation;
  readonly isOpen: boolean;
  /** Called when the user follows the link to the operation. */
  readonly onFollow?: () => void;
}

/** An operation of the API: its summary and, if it is open, its details. */
export function OperationView({ api, placed, isOpen, onFollow }: OperationViewProps) {
  const { method, path, operation } = placed;
  const { operationId, summary, description, parameters, requestBody, responses } = operation;
  return (
    <details class="card operation" id={operationId} open={isOpen}>
      <summary>
        <span class={`method ${method.toLowerCase()}`}>{method}</span>
        <code>{path}</code>
        <span class="dim">{summary}</span>
      </summary>
      <div class="inside">
        {description !== undefined && <p>{description}</p>}
        {parameters.length > 0 && <Parameters parameters={parameters} />}
        {requestBody !== undefined && <Shown api={api} title="Body" content={requestBody.content} />}
        {Object.entries(responses).map(([status, { description, content }]) => (
          <Shown
            key={status}
            api={api}
            title={status === "default" ? "Other responses" : `Response ${status}`}
            about={description}
            content={content}
          />
        ))}
        <h4>curl</h4>
        <pre tabIndex={0}>{curlOfOperation(api, placed, location.origin)}</pre>
        <p>
          <a href={`#${operationId}`} onClick={onFollow}>
            Link to this operation
          </a>
        </p>
      </div>
    </details>
  );
}

function Parameters({ parameters }: { readonly parameters: readonly Parameter[] }) {
  return (
    <>
      <h4>Parameters</h4>
      <ul class="members">
        {parameters.map(({ name, in: place, description, schema }) => (
          <li key={name}>
            <code>{name}</code> <span class="type">{schemaTypeText(schema)}</span>{" "}
            <span class="dim">
              {[`in the ${place}`, description, schemaLimitsText(schema)].filter(Boolean).join("; ")}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

interface ShownProps {
  readonly api: OpenApi;
  readonly title: string;
  readonly about?: string;
  readonly content?: Content | undefined;
}

function Shown({ api, title, about = "", content = {} }: ShownProps) {
  const [found] = Object.entries(content);
  const type =
    found === undefined ? "" : found[0] === "application/json" ? schemaTypeText(found[1].schema) : found[0];
  return (
    <>
      <h4>
        {title} <span class="type">{type}</span>
      </h4>
      {about !== "" && about !== type && <p class="dim">{about}</p>}
      {found !== undefined && <SchemaView api={api} schema={found[1].schema} />}
    </>
  );
}
