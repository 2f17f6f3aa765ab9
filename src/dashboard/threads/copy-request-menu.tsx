import type { JsonRecord } from "../api/records.ts";
import { runAction, showNotice } from "../app/notices.ts";
import { copyToClipboard } from "../components/copy-button.tsx";

/** A menu that copies the form's request, as a curl command or as code for an SDK. */
export function CopyRequestMenu({
  thread,
  request,
}: {
  readonly thread: string | null;
  readonly request: JsonRecord;
}) {
  const copy = (what: string, make: (thread: string | null, request: JsonRecord) => string) =>
    runAction(async () => {
      await copyToClipboard(make(thread, request));
      showNotice(`Copied: ${what}.`);
    });
  return (
    <select
      aria-label="Copy as"
      value=""
      onChange={({ currentTarget }) => {
        const { value } = currentTarget;
        currentTarget.value = "";
        if (value === "curl") void copy("a curl command", curlOfRequest);
        if (value === "js") void copy("code for the JavaScript SDK", javascriptOfRequest);
        if (value === "py") void copy("code for the Python SDK", pythonOfRequest);
      }}
    >
      <option value="">Copy as…</option>
      <option value="curl">curl</option>
      <option value="js">JavaScript SDK</option>
      <option value="py">Python SDK</option>
    </select>
  );
}

const base = (): string => new URL(".", location.href.replace(/#.*$/, "")).href.replace(/\/$/, "");

/**
 * Quotes a text for a POSIX shell, which takes all characters between single quotes literally except for the single
 * quote.
 */
const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

export function curlOfRequest(thread: string | null, request: JsonRecord): string {
  const path = thread === null ? "runs/stream" : `threads/${thread}/runs/stream`;
  const body = JSON.stringify({ ...request, stream_mode: ["values", "messages-tuple"] });
  return `curl -N ${quoted(`${base()}/${path}`)} -H 'content-type: application/json' -d ${quoted(body)}`;
}

export function javascriptOfRequest(thread: string | null, { assistant_id, ...request }: JsonRecord): string {
  const camel = Object.fromEntries(
    Object.entries(request).map(([name, value]) => [
      name.replace(/_(\w)/g, (_, c: string) => c.toUpperCase()),
      value,
    ]),
  );
  const options = JSON.stringify({ ...camel, streamMode: ["values", "messages-tuple"] }, null, 2);
  return `import { Client } from "@langchain/langgraph-sdk";

const client = new Client({ apiUrl: ${JSON.stringify(base())} });
for await (const { event, data } of client.runs.stream(${JSON.stringify(thread)}, ${JSON.stringify(assistant_id)}, ${options})) {
  console.log(event, data);
}
`;
}

export function pythonOfRequest(thread: string | null, { assistant_id, ...request }: JsonRecord): string {
  const options = Object.entries({ ...request, stream_mode: ["values", "messages-tuple"] })
    .map(([name, value]) => `    ${name}=${python(value)},\n`)
    .join("");
  return `from langgraph_sdk import get_sync_client

client = get_sync_client(url=${python(base())})
for part in client.runs.stream(
    ${python(thread)},
    ${python(assistant_id)},
${options}):
    print(part.event, part.data)
`;
}

function python(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  const entries = Object.entries(value).map(([name, inner]) => `${JSON.stringify(name)}: ${python(inner)}`);
  return `{${entries.join(", ")}}`;
}
