import { operationsOf, type OpenApi } from "./openapi.ts";
import { OperationView } from "./operation-view.tsx";

export const apiFragmentOfTag = (tag: string): string => tag.toLowerCase().replaceAll(/\W+/g, "-");

/**
 * The API reference, generated from the OpenAPI description. `shown`: the URL fragment, which names the operation to
 * open.
 */
export function ApiReference({ api, shown }: { readonly api: OpenApi; readonly shown: string }) {
  const operations = operationsOf(api);
  return (
    <>
      <h1 id="api">API reference</h1>
      <About text={api.info.description} />
      <p>
        <a href="openapi.json">openapi.json</a>
      </p>
      {api.tags.map(({ name }) => (
        <section key={name} aria-labelledby={apiFragmentOfTag(name)}>
          <h2 id={apiFragmentOfTag(name)}>{name}</h2>
          {operations
            .filter(({ operation }) => operation.tags.includes(name))
            .map((placed) => (
              <OperationView
                key={placed.operation.operationId}
                api={api}
                placed={placed}
                isOpen={placed.operation.operationId === shown}
              />
            ))}
        </section>
      ))}
    </>
  );
}

/** Shows a text as paragraphs, in which names between backquotes are code. */
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
