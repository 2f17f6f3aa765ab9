import readme from "../../../README.md";
import access from "../../guide/access.md";
import authentication from "../../guide/authentication.md";
import clients from "../../guide/clients.md";
import clocks from "../../guide/clocks.md";
import configuration from "../../guide/configuration.md";
import conformance from "../../guide/conformance.md";
import differences from "../../guide/differences.md";
import errors from "../../guide/errors.md";
import graphs from "../../guide/graphs.md";
import inspector from "../../guide/inspector.md";
import interrupts from "../../guide/interrupts.md";
import langgraph from "../../guide/langgraph.md";
import limits from "../../guide/limits.md";
import machines from "../../guide/machines.md";
import messages from "../../guide/messages.md";
import operations from "../../guide/operations.md";
import runs from "../../guide/runs.md";
import { markdownToPlainText, parseDocument } from "../components/markdown.tsx";

export interface GuidePage {
  /** The page's name in URL fragments, such as `operations` in `docs#guide/operations`. */
  readonly name: string;
  readonly title: string;
  /**
   * The path of the page's file, relative to the root of the repository. Relative links in the page are resolved
   * against it.
   */
  readonly file: string;
  readonly tokens: ReturnType<typeof parseDocument>;
}

/** A heading of a page with the text up to the next heading. */
export interface GuideSection {
  readonly page: GuidePage;
  /** The URL fragment of the section, such as `guide/operations/backups`. */
  readonly id: string;
  readonly title: string;
  readonly text: string;
}

const files: { readonly [name: string]: string } = {
  graphs,
  interrupts,
  messages,
  langgraph,
  machines,
  runs,
  clients,
  inspector,
  operations,
  configuration,
  access,
  authentication,
  errors,
  limits,
  clocks,
  differences,
  conformance,
};

/** The page that is shown if the URL has no fragment. */
export const overviewPage: GuidePage = {
  name: "overview",
  title: "Overview",
  file: "README.md",
  tokens: parseDocument(readme),
};

/** The pages of the guide, in the order of the table of contents. */
export const guidePages: readonly GuidePage[] = [
  overviewPage,
  ...Object.entries(files).map(([name, text]) => ({
    name,
    title: /^# (.+)$/m.exec(text)?.[1] ?? name,
    file: `src/guide/${name}.md`,
    tokens: parseDocument(text),
  })),
];

export const guideFragmentOf = ({ name }: GuidePage, heading?: string): string =>
  heading === undefined ? `guide/${name}` : `guide/${name}/${slug(heading)}`;

/**
 * Returns the anchor that GitHub creates for a heading, because links between the Markdown files use these anchors.
 */
function slug(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, "")
    .replaceAll(" ", "-");
}

/**
 * Returns the URL fragment for a relative link on the page `from`; undefined if the link does not lead to a page of
 * the guide.
 */
export function guideFragmentOfLink(href: string, from: GuidePage): string | undefined {
  const { pathname, hash } = new URL(href, `file:///${from.file}`);
  const page = guidePages.find(({ file }) => pathname === `/${file}`);
  if (page === undefined) return undefined;
  return `${guideFragmentOf(page)}${hash === "" ? "" : `/${hash.slice(1)}`}`;
}

let sections: readonly GuideSection[] | undefined;

/** Returns the sections of all pages, which are created at the first call. */
export function allGuideSections(): readonly GuideSection[] {
  sections ??= guidePages.flatMap(guideSectionsOf);
  return sections;
}

export function guideSectionsOf(page: GuidePage): readonly GuideSection[] {
  const found: { title: string; id: string; tokens: GuidePage["tokens"][number][] }[] = [];
  for (const token of page.tokens) {
    if (token.type === "heading") {
      const title = markdownToPlainText("tokens" in token ? (token.tokens ?? []) : []).trim();
      // The first heading is the page's title, so its section gets the fragment of the page.
      const id = found.length === 0 ? guideFragmentOf(page) : guideFragmentOf(page, title);
      found.push({ title: found.length === 0 ? page.title : title, id, tokens: [] });
    } else found.at(-1)?.tokens.push(token);
  }
  return found.map(({ title, id, tokens }) => ({ page, id, title, text: markdownToPlainText(tokens) }));
}
