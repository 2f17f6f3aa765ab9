import {
  MarkdownDocument,
  markdownToPlainText,
  type MarkdownRenderers,
  WebLink,
} from "../components/markdown.tsx";
import {
  guideFragmentOf,
  guideFragmentOfLink,
  guidePages,
  type GuidePage,
  overviewPage,
} from "./guide-contents.ts";
import { operationsOf, type OpenApi } from "./openapi.ts";

interface GuidePageViewProps {
  readonly name: string;
  /** The OpenAPI description of the server; undefined until it is loaded. */
  readonly api: OpenApi | undefined;
}

/** Shows one page of the guide. */
export function GuidePageView({ name, api }: GuidePageViewProps) {
  const at = guidePages.findIndex((page) => page.name === name);
  const page = guidePages[at];
  if (page === undefined)
    return (
      <>
        <h1>Page not found</h1>
        <p>
          <a href={`#${guideFragmentOf(overviewPage)}`}>Open overview</a>
        </p>
      </>
    );
  const [before, after] = [guidePages[at - 1], guidePages[at + 1]];
  return (
    <article>
      <MarkdownDocument tokens={page.tokens} rendering={renderingOf(page, api)} />
      <footer class="bar turn">
        {before !== undefined && <a href={`#${guideFragmentOf(before)}`}>← {before.title}</a>}
        <span class="space" />
        {after !== undefined && <a href={`#${guideFragmentOf(after)}`}>{after.title} →</a>}
      </footer>
    </article>
  );
}

function renderingOf(page: GuidePage, api: OpenApi | undefined): MarkdownRenderers {
  const operations = new Map(
    api === undefined
      ? []
      : operationsOf(api).map(({ method, path, operation }) => [`${method} ${path}`, operation.operationId]),
  );
  return {
    heading: ({ depth, tokens }, shown) => {
      const id =
        depth === 1 ? guideFragmentOf(page) : guideFragmentOf(page, markdownToPlainText(tokens).trim());
      const Heading = `h${Math.min(depth, 4)}` as "h1" | "h2" | "h3" | "h4";
      return (
        <Heading id={id}>
          {shown}
          {depth > 1 && (
            <a class="anchor" href={`#${id}`} aria-label="Link to this section">
              #
            </a>
          )}
        </Heading>
      );
    },
    link: (href, shown) => {
      if (/^[a-z]+:/i.test(href)) return <WebLink href={href} shown={shown} />;
      const fragment = guideFragmentOfLink(href, page);
      // Links to other files of the repository are shown as text, because the server does not serve these files.
      return fragment === undefined ? (
        <span title={href}>{shown}</span>
      ) : (
        <a href={`#${fragment}`}>{shown}</a>
      );
    },
    // Images are left out, because the server does not serve the guide's image files.
    image: () => null,
    code: (text) => {
      const [, method = "GET", path = ""] = /^(?:([A-Z]+) )?(\/[^?\s]*)/.exec(text) ?? [];
      const operation = operations.get(`${method} ${path}`);
      return operation === undefined ? (
        <code>{text}</code>
      ) : (
        <a href={`#${operation}`}>
          <code>{text}</code>
        </a>
      );
    },
  };
}
