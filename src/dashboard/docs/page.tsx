import { useState } from "preact/hooks";
import { type OpenApi, operationsOf, type Placed } from "./openapi.ts";
import { OperationView } from "./operation.tsx";

const idOf = (tag: string): string => tag.toLowerCase().replaceAll(/\W+/g, "-");

/** The API to read, made of what the server says of it. */
export function Docs({ api }: { readonly api: OpenApi }) {
  const [wanted, setWanted] = useState("");
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = ({ method, path, operation }: Placed) => {
    const text = `${method} ${path} ${operation.summary}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const shown = operationsOf(api).filter(fits);
  const groups = api.tags
    .map(({ name }) => ({ name, operations: shown.filter(({ operation }) => operation.tags.includes(name)) }))
    .filter(({ operations }) => operations.length > 0);
  return (
    <>
      <header class="bar docs-head">
        <h1>
          {api.info.title} <span class="dim">{api.info.version}</span>
        </h1>
        <input
          type="search"
          aria-label="Find an operation"
          placeholder="Find: run stream, POST /threads…"
          value={wanted}
          onInput={(event) => setWanted(event.currentTarget.value)}
        />
        <a href="openapi.json">openapi.json</a>
        <a href="./">Dashboard</a>
      </header>
      <div class="docs">
        <nav aria-label="Groups">
          {groups.map(({ name, operations }) => (
            <a key={name} href={`#${idOf(name)}`}>
              {name} <span class="dim">{operations.length}</span>
            </a>
          ))}
        </nav>
        <main>
          {words.length === 0 && <About text={api.info.description} />}
          {groups.map(({ name, operations }) => (
            <section key={name} aria-labelledby={idOf(name)}>
              <h2 id={idOf(name)}>{name}</h2>
              {operations.map((placed) => (
                <OperationView key={placed.operation.operationId} api={api} placed={placed} />
              ))}
            </section>
          ))}
          {groups.length === 0 && <p class="empty">No operation has all of these words.</p>}
        </main>
      </div>
    </>
  );
}

/** Paragraphs, with names of things between back quotes. */
function About({ text }: { readonly text: string }) {
  return (
    <>
      {text.split("\n\n").map((paragraph) => (
        <p key={paragraph}>
          {paragraph.split("`").map((part, i) => (i % 2 === 0 ? part : <code key={part}>{part}</code>))}
        </p>
      ))}
    </>
  );
}
