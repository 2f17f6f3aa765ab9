import type { RouteGroup } from "../access/route-groups.ts";
import { escapeControls, type ApplyStyle } from "../platform/terminal.ts";

/** The data about a started server that the banner shows. */
export interface StartedServer {
  readonly version: string;
  /** The URL for clients, including the path prefix of the routes. */
  readonly url: string;
  readonly graphs: readonly string[];
  /** The data directory, absolute. */
  readonly data: string;
  /** Groups of routes that are not served. */
  readonly disabled: readonly RouteGroup[];
  /** Whether the web pages of LangGraph Studio and Agent Chat may call the server. */
  readonly allowsStudio: boolean;
  /** A sentence about who may use the server. */
  readonly access: string;
  /** Warnings, one for each line. */
  readonly notes: readonly string[];
}

/** The most graphs that the banner names. */
const MAX_GRAPHS = 12;

/** The text that is printed for people when the server has started: URLs, graphs and warnings. */
export function banner(started: StartedServer, applyStyle: ApplyStyle): string {
  const { version, url, graphs, data, disabled, access, notes } = started;
  const pages: readonly (readonly [RouteGroup, name: string, path: string])[] = [
    ["ui", "Dashboard", "/"],
    ["meta", "API reference", "/docs"],
    ["meta", "Inspector", "/inspector"],
  ];
  const more = graphs.length - MAX_GRAPHS;
  const rows: (readonly [name: string, value: string])[] = [
    ...pages
      .filter(([group]) => !disabled.includes(group))
      .map(([, name, path]) => [name, applyStyle("cyan", url + path)] as const),
    ...(started.allowsStudio
      ? toolLinks(url, graphs).map(([name, link]) => [name, applyStyle("cyan", link)] as const)
      : []),
    [
      "Graphs",
      graphs.slice(0, MAX_GRAPHS).map(escapeControls).join(", ") + (more > 0 ? ` and ${more} more` : ""),
    ],
    ["Data", escapeControls(data)],
    ["Access", escapeControls(access)],
  ];
  const width = Math.max(...rows.map(([name]) => name.length)) + 2;
  const lines = rows.map(([name, value]) => `  ${applyStyle("dim", name.padEnd(width))}${value}`);
  const marks = notes.map((note) => `  ${applyStyle("yellow", `! ${escapeControls(note)}`)}`);
  const title = `${applyStyle("bold", `Heddle ${version}`)} listens on ${applyStyle(["bold", "cyan"], url)}`;
  return `\n${[title, "", ...lines, ...(marks.length > 0 ? ["", ...marks] : [])].join("\n")}\n\n`;
}

/** Links to web tools that can use a server on this machine. The first graph is the one that Agent Chat opens. */
export function toolLinks(
  url: string,
  graphs: readonly string[],
): readonly (readonly [name: string, link: string])[] {
  const [graph = ""] = graphs;
  const at = encodeURIComponent(url);
  return [
    ["LangGraph Studio", `https://smith.langchain.com/studio?baseUrl=${at}`],
    ["Agent Chat", `https://agentchat.vercel.app/?apiUrl=${at}&assistantId=${encodeURIComponent(graph)}`],
  ];
}
