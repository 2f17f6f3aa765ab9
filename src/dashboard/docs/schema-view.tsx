import { useState } from "preact/hooks";
import {
  schemaLimitsText,
  findObjectSchema,
  type OpenApi,
  type OpenApiSchema,
  schemaTypeText,
} from "./openapi.ts";

/**
 * Shows the members of an object with their types. The members of nested objects are shown when the user opens them.
 */
export function SchemaView({ api, schema }: { readonly api: OpenApi; readonly schema: OpenApiSchema }) {
  const whole = findObjectSchema(api, schema);
  if (whole?.properties === undefined) return null;
  return (
    <ul class="members">
      {Object.entries(whole.properties).map(([name, member]) => (
        <Member
          key={name}
          api={api}
          name={name}
          schema={member}
          isNeeded={whole.required?.includes(name) === true}
        />
      ))}
    </ul>
  );
}

interface MemberProps {
  readonly api: OpenApi;
  readonly name: string;
  readonly schema: OpenApiSchema;
  readonly isNeeded: boolean;
}

function Member({ api, name, schema, isNeeded }: MemberProps) {
  const [isOpen, setOpen] = useState(false);
  const hasMore = findObjectSchema(api, schema) !== undefined;
  return (
    <li>
      <code>{name}</code> <span class="type">{schemaTypeText(schema)}</span>{" "}
      <span class="dim">{[isNeeded && "required", schemaLimitsText(schema)].filter(Boolean).join("; ")}</span>
      {hasMore && (
        <details class="deeper" onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>Fields</summary>
          {isOpen && <SchemaView api={api} schema={schema} />}
        </details>
      )}
    </li>
  );
}
