import { Marked, type MarkedToken, type Token, type Tokens } from "marked";
import { type ComponentChildren, Fragment } from "preact";
import { useMemo } from "preact/hooks";
import { ErrorBoundary } from "./error-boundary.tsx";

/** The Markdown parser for messages, in which each line break is kept. */
const marked = new Marked({ gfm: true, breaks: true });
/** The Markdown parser for documents, whose source lines are wrapped: a single line break is a space. */
const wrapped = new Marked({ gfm: true, breaks: false });

/** Longer texts are shown as plain text, because parsing them would block the page. */
const MAX_TEXT_CHARACTERS = 60_000;
/** Matches a text that may contain Markdown, a link or a line break. Any other text needs no parsing. */
const MARKDOWN = /[\\`*_#>|~[\]!<&\n]|^\s*([-+]|\d+[.)])\s|https?:|www\.|@/;

interface MarkdownProps {
  readonly text: string;
  readonly class?: string;
}

/**
 * Renders a text as Markdown. HTML in the text is shown as text, and only web links become links. Images become links
 * too, because a message MUST NOT make this page send requests.
 */
export function Markdown({ text, class: name = "" }: MarkdownProps) {
  const tokens = useMemo(() => tokensOf(text), [text]);
  const plain = <div class={`text ${name}`}>{text}</div>;
  if (tokens === null) return plain;
  return (
    <ErrorBoundary name="This message" fallback={plain}>
      <div class={`text markdown ${name}`}>{all(tokens, MESSAGE)}</div>
    </ErrorBoundary>
  );
}

/** Renderers for headings, links, images and code spans. */
export interface MarkdownRenderers {
  heading(heading: Tokens.Heading, shown: ComponentChildren): ComponentChildren;
  link(href: string, shown: ComponentChildren): ComponentChildren;
  image(image: Tokens.Image): ComponentChildren;
  code(text: string): ComponentChildren;
}

const MESSAGE: MarkdownRenderers = {
  // A heading in a message is not an `<h1>` to `<h6>`, so that it does not mix with the headings of the page.
  heading: ({ depth }, shown) => (
    <p class={`heading h${depth}`}>
      <strong>{shown}</strong>
    </p>
  ),
  link: (href, shown) => <WebLink href={href} shown={shown} />,
  image: ({ href, text }) => <WebLink href={href} shown={`[image${text === "" ? "" : `: ${text}`}]`} />,
  code: (text) => <code>{text}</code>,
};

/** Parses a trusted document, such as a page of the guide. */
export const parseDocument = (text: string): readonly Token[] => wrapped.lexer(text);

/** Renders a trusted document. HTML in the document is shown as text. */
export function MarkdownDocument({
  tokens,
  rendering,
}: {
  readonly tokens: readonly Token[];
  readonly rendering: MarkdownRenderers;
}) {
  return <div class="text markdown">{all(tokens, rendering)}</div>;
}

/**
 * Returns the text of a document for the search: without Markdown marks, and with spaces between table cells and list
 * items.
 */
export function markdownToPlainText(tokens: readonly Token[]): string {
  const parts = tokens.map((given) => {
    const token = given as MarkedToken;
    switch (token.type) {
      case "table":
        return [token.header, ...token.rows]
          .flat()
          .map(({ tokens }) => `${markdownToPlainText(tokens)} `)
          .join("");
      case "list":
        return token.items.map(({ tokens }) => `${markdownToPlainText(tokens)} `).join("");
      case "image":
        return "";
      case "code":
        return `${token.text} `;
      case "codespan":
        return token.text;
      case "paragraph":
      case "heading":
        return `${markdownToPlainText(token.tokens ?? [])} `;
      case "br":
      case "space":
        return " ";
      default:
        return "tokens" in token && token.tokens !== undefined
          ? markdownToPlainText(token.tokens)
          : ((token as { text?: string }).text ?? "");
    }
  });
  return parts.join("").replaceAll(/\s+/g, " ").trimStart();
}

/**
 * The largest number of {@link MARKS} in a paragraph. Pairing emphasis marks takes time that grows with the square of
 * their number: 24 s for `*_b ` repeated 20,000 times.
 */
const MAX_MARKS = 1_000;
const MARKS = /[*_~`[\]<!&]/g;
/** Matches a line that opens 20 or more nested quotes and lists. The parser recurses once for each level. */
const DEEP_NESTING = /^[ \t]*(?:(?:>[ \t]?|[-+*][ \t]+|\d{1,9}[.)][ \t]+)){20}/m;
/** The largest depth of nested Markdown elements that is rendered. */
const MAX_DEPTH = 40;

/**
 * Parses a text as Markdown. Returns null if the text is to be shown as plain text: it contains no Markdown, or parsing
 * it could block the page or fails.
 */
function tokensOf(text: string): Token[] | null {
  if (text.length > MAX_TEXT_CHARACTERS || !MARKDOWN.test(text) || DEEP_NESTING.test(text)) return null;
  const isDense = text.split(/\n[ \t]*\n/).some((block) => (block.match(MARKS)?.length ?? 0) > MAX_MARKS);
  if (isDense) return null;
  try {
    const tokens = marked.lexer(text);
    return depthOf(tokens, 0) > MAX_DEPTH ? null : tokens;
  } catch {
    return null;
  }
}

function depthOf(tokens: readonly Token[], depth: number): number {
  if (depth > MAX_DEPTH) return depth;
  let most = depth;
  for (const token of tokens) {
    const { tokens: inner, items } = token as { tokens?: Token[]; items?: Token[] };
    if (inner !== undefined) most = Math.max(most, depthOf(inner, depth + 1));
    if (items !== undefined) most = Math.max(most, depthOf(items, depth + 1));
  }
  return most;
}

const all = (tokens: readonly Token[] | undefined, rendering: MarkdownRenderers): ComponentChildren =>
  tokens?.map((token, i) => one(token, i, rendering));

function one(given: Token, i: number, rendering: MarkdownRenderers): ComponentChildren {
  const inner = (tokens: readonly Token[] | undefined) => all(tokens, rendering);
  const keyed = (shown: ComponentChildren) => <Fragment key={i}>{shown}</Fragment>;
  const token = given as MarkedToken;
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "hr":
      return <hr key={i} />;
    case "br":
      return <br key={i} />;
    case "code":
      return (
        <pre key={i} tabIndex={0} aria-label={token.lang ? `Code: ${token.lang}` : "Code"}>
          <code>{token.text}</code>
        </pre>
      );
    case "codespan":
      return keyed(rendering.code(token.text));
    case "heading":
      return keyed(rendering.heading(token, inner(token.tokens)));
    case "paragraph":
      return <p key={i}>{inner(token.tokens)}</p>;
    case "blockquote":
      return <blockquote key={i}>{inner(token.tokens)}</blockquote>;
    case "strong":
      return <strong key={i}>{inner(token.tokens)}</strong>;
    case "em":
      return <em key={i}>{inner(token.tokens)}</em>;
    case "del":
      return <del key={i}>{inner(token.tokens)}</del>;
    case "list":
      return <List key={i} list={token} rendering={rendering} />;
    case "table":
      return <Table key={i} table={token} rendering={rendering} />;
    case "link":
      return keyed(rendering.link(token.href, inner(token.tokens)));
    case "image":
      return keyed(rendering.image(token));
    case "escape":
      return token.text;
    case "text":
      return "tokens" in token && token.tokens !== undefined ? inner(token.tokens) : token.text;
    default:
      return given.raw;
  }
}

function List({ list, rendering }: { readonly list: Tokens.List; readonly rendering: MarkdownRenderers }) {
  const items = list.items.map((item, i) => (
    <li key={i}>
      {item.task && <span aria-label={item.checked ? "done" : "to do"}>{item.checked ? "☑ " : "☐ "}</span>}
      {all(item.tokens, rendering)}
    </li>
  ));
  return list.ordered ? <ol start={Number(list.start) || 1}>{items}</ol> : <ul>{items}</ul>;
}

function Table({
  table,
  rendering,
}: {
  readonly table: Tokens.Table;
  readonly rendering: MarkdownRenderers;
}) {
  return (
    <div class="wide" tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead>
          <tr>
            {table.header.map(({ tokens, align }, i) => (
              <th key={i} style={{ textAlign: align ?? "left" }}>
                {all(tokens, rendering)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((cells, i) => (
            <tr key={i}>
              {cells.map(({ tokens, align }, j) => (
                <td key={j} style={{ textAlign: align ?? "left" }}>
                  {all(tokens, rendering)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function WebLink({ href, shown }: { readonly href: string; readonly shown: ComponentChildren }) {
  if (!/^(https?:\/\/|mailto:)/i.test(href)) return <span title={href}>{shown}</span>;
  return (
    <a href={href} title={href} target="_blank" rel="noopener noreferrer nofollow">
      {shown}
    </a>
  );
}
