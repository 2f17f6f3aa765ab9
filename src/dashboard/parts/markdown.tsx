import { Marked, type MarkedToken, type Token, type Tokens } from "marked";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { Boundary } from "./boundary.tsx";

const marked = new Marked({ gfm: true, breaks: true });

/** Characters that are read as Markdown at most: what is longer would hold up the page, and is shown as it stands. */
const MOST = 60_000;
/** Without any of these, and on one line, a text means nothing but itself. */
const MEANS = /[\\`*_#>|~[\]!<&\n]|^\s*([-+]|\d+[.)])\s|https?:|www\.|@/;

interface MarkdownProps {
  readonly text: string;
  readonly class?: string;
}

/**
 * A text as Markdown. What it says becomes elements one by one: HTML in it is shown as text, links lead to the web alone, and
 * images are links, since a message must not make this page ask anybody for anything.
 */
export function Markdown({ text, class: name = "" }: MarkdownProps) {
  const tokens = useMemo(() => tokensOf(text), [text]);
  const plain = <div class={`text ${name}`}>{text}</div>;
  if (tokens === null) return plain;
  return (
    <Boundary name="This message" fallback={plain}>
      <div class={`text markdown ${name}`}>{all(tokens)}</div>
    </Boundary>
  );
}

/** Marks of a paragraph: the time to pair them grows with their square, 24 s for the 20,000 of `*_b ` 20,000 times. */
const MOST_MARKS = 1_000;
const MARKS = /[*_~`[\]<!&]/g;
/** Quotes and lists within one another, opened on one line: each is a call within a call to the reader. */
const DEEP = /^[ \t]*(?:(?:>[ \t]?|[-+*][ \t]+|\d{1,9}[.)][ \t]+)){20}/m;
/** Levels of what is shown. */
const DEEPEST = 40;

/** What a text says as Markdown; null: it is shown as it stands, since it means nothing more, or would hold up the page. */
function tokensOf(text: string): Token[] | null {
  if (text.length > MOST || !MEANS.test(text) || DEEP.test(text)) return null;
  const isDense = text.split(/\n[ \t]*\n/).some((block) => (block.match(MARKS)?.length ?? 0) > MOST_MARKS);
  if (isDense) return null;
  try {
    const tokens = marked.lexer(text);
    return depthOf(tokens, 0) > DEEPEST ? null : tokens;
  } catch {
    return null;
  }
}

function depthOf(tokens: readonly Token[], depth: number): number {
  if (depth > DEEPEST) return depth;
  let most = depth;
  for (const token of tokens) {
    const { tokens: inner, items } = token as { tokens?: Token[]; items?: Token[] };
    if (inner !== undefined) most = Math.max(most, depthOf(inner, depth + 1));
    if (items !== undefined) most = Math.max(most, depthOf(items, depth + 1));
  }
  return most;
}

const all = (tokens: readonly Token[] | undefined): ComponentChildren => tokens?.map(one);

function one(given: Token, i: number): ComponentChildren {
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
      return <code key={i}>{token.text}</code>;
    case "heading":
      // The page has headings of its own.
      return (
        <p key={i} class={`heading h${token.depth}`}>
          <strong>{all(token.tokens)}</strong>
        </p>
      );
    case "paragraph":
      return <p key={i}>{all(token.tokens)}</p>;
    case "blockquote":
      return <blockquote key={i}>{all(token.tokens)}</blockquote>;
    case "strong":
      return <strong key={i}>{all(token.tokens)}</strong>;
    case "em":
      return <em key={i}>{all(token.tokens)}</em>;
    case "del":
      return <del key={i}>{all(token.tokens)}</del>;
    case "list":
      return <List key={i} list={token} />;
    case "table":
      return <Table key={i} table={token} />;
    case "link":
      return <Link key={i} href={token.href} shown={all(token.tokens)} />;
    case "image":
      return (
        <Link key={i} href={token.href} shown={`[image${token.text === "" ? "" : `: ${token.text}`}]`} />
      );
    case "escape":
      return token.text;
    case "text":
      return "tokens" in token && token.tokens !== undefined ? all(token.tokens) : token.text;
    default:
      return given.raw;
  }
}

function List({ list }: { readonly list: Tokens.List }) {
  const items = list.items.map((item, i) => (
    <li key={i}>
      {item.task && <span aria-label={item.checked ? "done" : "to do"}>{item.checked ? "☑ " : "☐ "}</span>}
      {all(item.tokens)}
    </li>
  ));
  return list.ordered ? <ol start={Number(list.start) || 1}>{items}</ol> : <ul>{items}</ul>;
}

function Table({ table }: { readonly table: Tokens.Table }) {
  return (
    <div class="wide" tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead>
          <tr>
            {table.header.map(({ tokens, align }, i) => (
              <th key={i} style={{ textAlign: align ?? "left" }}>
                {all(tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((cells, i) => (
            <tr key={i}>
              {cells.map(({ tokens, align }, j) => (
                <td key={j} style={{ textAlign: align ?? "left" }}>
                  {all(tokens)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Link({ href, shown }: { readonly href: string; readonly shown: ComponentChildren }) {
  if (!/^(https?:\/\/|mailto:)/i.test(href)) return <span title={href}>{shown}</span>;
  return (
    <a href={href} title={href} target="_blank" rel="noopener noreferrer nofollow">
      {shown}
    </a>
  );
}
