import { allGuideSections, type GuideSection } from "./guide-contents.ts";
import { operationsOf, type OpenApi, type LocatedOperation } from "./openapi.ts";
import { OperationView } from "./operation-view.tsx";

/** The largest number of sections that are shown. */
const MAX_SECTIONS = 30;
/** The largest number of characters of an excerpt before its first match. */
const MAX_CHARACTERS_BEFORE = 50;
/** The largest number of characters of an excerpt. */
const MAX_EXCERPT_CHARACTERS = 200;

export const splitSearchTerms = (wanted: string): readonly string[] =>
  wanted.toLowerCase().split(/\s+/).filter(Boolean);

const hasAll = (text: string, words: readonly string[]): boolean =>
  words.every((word) => text.includes(word));

/**
 * Returns the sections of the guide that contain all words, best matches first: a heading that equals the words, a
 * heading that contains them, a heading that contains them together with the page's title, and then the other sections.
 */
function sectionsWith(words: readonly string[]): readonly GuideSection[] {
  return allGuideSections()
    .map((section) => {
      const title = section.title.toLowerCase();
      const titles = `${section.page.title.toLowerCase()} ${title}`;
      const fits = [
        hasAll(`${titles} ${section.text.toLowerCase()}`, words),
        hasAll(titles, words),
        hasAll(title, words),
        title === words.join(" "),
      ];
      return { section, rank: fits.lastIndexOf(true) + 1 };
    })
    .filter(({ rank }) => rank > 0)
    .toSorted((a, b) => b.rank - a.rank)
    .map(({ section }) => section);
}

/**
 * Returns the operations that contain all words in their method, path, id, summary or description. Operations whose
 * method and path contain all words come first.
 */
function operationsWith(api: OpenApi | undefined, words: readonly string[]): readonly LocatedOperation[] {
  if (api === undefined) return [];
  return operationsOf(api)
    .map((placed) => {
      const { method, path, operation } = placed;
      const { operationId, summary, description = "" } = operation;
      const line = `${method} ${path}`.toLowerCase();
      const text = `${line} ${operationId} ${summary} ${description}`.toLowerCase();
      return { placed, rank: hasAll(line, words) ? 2 : hasAll(text, words) ? 1 : 0 };
    })
    .filter(({ rank }) => rank > 0)
    .toSorted((a, b) => b.rank - a.rank)
    .map(({ placed }) => placed);
}

interface SearchResultsProps {
  readonly api: OpenApi | undefined;
  readonly words: readonly string[];
  readonly onFollow: () => void;
}

/** Shows the search results from the guide and from the API reference. */
export function SearchResults({ api, words, onFollow }: SearchResultsProps) {
  const sections = sectionsWith(words);
  const operations = operationsWith(api, words);
  return (
    <>
      <h1>Search</h1>
      <p role="status" class="dim">
        {sections.length + operations.length === 0
          ? "No results."
          : `In the guide: ${sections.length}. In the API: ${operations.length}.`}
      </p>
      {sections.length > 0 && (
        <section aria-labelledby="found-guide">
          <h2 id="found-guide">Guide</h2>
          <ul class="found">
            {sections.slice(0, MAX_SECTIONS).map((section) => (
              <li key={section.id}>
                <a href={`#${section.id}`} onClick={onFollow}>
                  {section.title === section.page.title
                    ? section.title
                    : `${section.page.title} › ${section.title}`}
                </a>
                <Excerpt text={section.text} words={words} />
              </li>
            ))}
          </ul>
        </section>
      )}
      {api !== undefined && operations.length > 0 && (
        <section aria-labelledby="found-api">
          <h2 id="found-api">API</h2>
          {operations.map((placed) => (
            <OperationView
              key={placed.operation.operationId}
              api={api}
              placed={placed}
              isOpen={false}
              onFollow={onFollow}
            />
          ))}
        </section>
      )}
    </>
  );
}

/** Shows the text around the first match of a word, with all matches highlighted. */
function Excerpt({ text, words }: { readonly text: string; readonly words: readonly string[] }) {
  const places = words.map((word) => text.toLowerCase().indexOf(word)).filter((at) => at >= 0);
  const first = places.length === 0 ? 0 : Math.min(...places);
  const from = first <= MAX_CHARACTERS_BEFORE ? 0 : text.indexOf(" ", first - MAX_CHARACTERS_BEFORE) + 1;
  const to =
    from + MAX_EXCERPT_CHARACTERS >= text.length
      ? text.length
      : text.lastIndexOf(" ", from + MAX_EXCERPT_CHARACTERS);
  const shown = text.slice(from, to);
  const pattern = words.map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)).join("|");
  return (
    <p class="dim">
      {from > 0 && "… "}
      {shown
        .split(new RegExp(`(${pattern})`, "i"))
        .map((part, i) => (i % 2 === 1 ? <mark key={i}>{part}</mark> : part))}
      {to < text.length && " …"}
    </p>
  );
}
