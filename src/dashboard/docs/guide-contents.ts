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
import { plainText, parseDocument } from "../components/markdown.tsx";

export interface GuidePage {
  /** The page's name in addresses, such as `operations` in `docs#guide/operations`. */
  readonly name: string;
  readonly title: string;
  /** The page's file, relative to the root of the repository. Relative links are resolved against it. */
  readonly file: string;
  readonly tokens: ReturnType<typeof parseDocument>;
}

/** A heading with the text up to the next heading. */
export interface Section {
  readonly page: GuidePage;
  /** The URL fragment of the section. */
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

/** The page that opens first. */
export const overview: GuidePage = {
  name: "overview",
  title: "Overview",
  file: "README.md",
  tokens: parseDocument(readme),
};

/** The pages of the guide, in the order of the table of contents. */
export const guide: readonly GuidePage[] = [
  overview,
  ...Object.entries(files).map(([name, text]) => ({
    name,
    title: /^# (.+)$/m.exec(text)?.[1] ?? name,
    file: `src/guide/${name}.md`,
    tokens: parseDocument(text),
  })),
];

export const fragmentOf = ({ name }: GuidePage, heading?: string): string =>
  heading === undefined ? `guide/${name}` : `guide/${name}/${slug(heading)}`;

/** Returns the anchor of a heading as GitHub creates it, because links in the files use these anchors. */
function slug(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, "")
    .replaceAll(" ", "-");
}

/** Returns the fragment for a relative link in the guide; undefined if the link leads to no page of the guide. */
export function fragmentOfLink(href: string, from: GuidePage): string | undefined {
  const { pathname, hash } = new URL(href, `file:///${from.file}`);
  const page = guide.find(({ file }) => pathname === `/${file}`);
  if (page === undefined) return undefined;
  return `${fragmentOf(page)}${hash === "" ? "" : `/${hash.slice(1)}`}`;
}

let sections: readonly Section[] | undefined;

/** Returns all sections of all pages. They are parsed at the first search. */
export function allSections(): readonly Section[] {
  sections ??= guide.flatMap(sectionsOf);
  return sections;
}

export function sectionsOf(page: GuidePage): readonly Section[] {
  const found: { title: string; id: string; tokens: GuidePage["tokens"][number][] }[] = [];
  for (const token of page.tokens) {
    if (token.type === "heading") {
      const title = plainText("tokens" in token ? (token.tokens ?? []) : []).trim();
      // The first heading is the title of the page, so its section has the page's own fragment.
      const id = found.length === 0 ? fragmentOf(page) : fragmentOf(page, title);
      found.push({ title: found.length === 0 ? page.title : title, id, tokens: [] });
    } else found.at(-1)?.tokens.push(token);
  }
  return found.map(({ title, id, tokens }) => ({ page, id, title, text: plainText(tokens) }));
}
