import { existsSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Plugin } from "esbuild";

/** A file of a bundle, with its content type. */
export interface ComponentFile {
  readonly type: string;
  readonly body: string;
}

/** The files of a bundle of UI components, by name. `global`: the name of the global variable that holds the bundle in a page. */
export interface ComponentBundle {
  readonly global: string;
  readonly files: ReadonlyMap<string, ComponentFile>;
}

/**
 * The settings `ui` and `ui_config`. For each graph, `ui` names a file whose default export is an object of the graph's components by name.
 */
export interface UiConfig {
  /** The absolute path of each graph's file. */
  readonly files: { readonly [graph: string]: string };
  /** Packages that the page provides to components, in addition to {@link PROVIDED_PACKAGES}. */
  readonly shared: readonly string[];
}

/** Endings that the bundler tries if a path has no file. */
const TRIED_ENDINGS = [".tsx", ".ts", ".jsx", ".js"];

/** Whether the bundler finds a file at a path. A directory may have an index file. */
export const hasComponentFile = (path: string): boolean =>
  ["", ...TRIED_ENDINGS].some((ending) => existsSync(path + ending));

/** Returns the bundle of a graph's UI components; undefined if the graph has none. The promise rejects with the error of the bundler. */
export type Components = (graph: string) => Promise<ComponentBundle> | undefined;

/** Packages that every page provides to components: LangGraph's client has loaded them. */
const PROVIDED_PACKAGES = [
  "react",
  "react-dom",
  "react/jsx-runtime",
  "@langchain/langgraph-sdk/react",
  "@langchain/langgraph-sdk/react-ui",
];

const TYPES: readonly (readonly [ending: string, type: string])[] = [
  [".js", "text/javascript; charset=utf-8"],
  [".css", "text/css; charset=utf-8"],
];

interface Built extends ComponentBundle {
  /** The paths of the source files, each with its modification time at the build. */
  readonly sources: ReadonlyMap<string, number>;
}

/** Bundles the UI components of each graph at the first request, and again at a request after a source file has changed. */
export function bundledComponents({ files, shared }: UiConfig): Components {
  const made = new Map<string, Promise<Built>>();
  const fresh = async (graph: string, file: string): Promise<Built> => {
    const known = await made.get(graph)?.catch(() => undefined);
    if (known !== undefined && [...known.sources].every(([path, at]) => changedAt(path) === at)) return known;
    const building = bundle(graph, file, shared);
    made.set(graph, building);
    return building;
  };
  return (graph) => {
    const file = Object.hasOwn(files, graph) ? files[graph] : undefined;
    return file === undefined ? undefined : fresh(graph, file);
  };
}

async function bundle(graph: string, file: string, shared: readonly string[]): Promise<Built> {
  // esbuild is loaded only here, because only projects with UI components need it.
  const { build } = await import("esbuild");
  const global = `__LGUI_${graph.replaceAll(/[^a-zA-Z0-9]/g, "_")}`;
  const { outputFiles, metafile } = await build({
    stdin: { contents: entryOf(file), resolveDir: dirname(file), sourcefile: "components.js" },
    bundle: true,
    write: false,
    metafile: true,
    minify: true,
    format: "iife",
    globalName: global,
    platform: "browser",
    target: "es2020",
    jsx: "automatic",
    outfile: "/entrypoint.js",
    absWorkingDir: dirname(file),
    define: { "process.env.NODE_ENV": '"production"' },
    logLevel: "silent",
    plugins: [given([...PROVIDED_PACKAGES, ...shared])],
  });
  const sent = outputFiles.flatMap(({ path, text }): [string, ComponentFile][] => {
    const name = path.replace(/^.*[/\\]/, "");
    const type = TYPES.find(([ending]) => name.endsWith(ending))?.[1];
    return type === undefined ? [] : [[name, { type, body: text }]];
  });
  const home = dirname(file);
  const sources = Object.keys(metafile.inputs)
    // Leaves out the entry module, which is not a file, and the packages that the page provides, which are not bundled.
    .filter((path) => path !== "components.js" && !path.startsWith("given:"))
    .map((path) => resolve(home, path));
  return {
    global,
    files: new Map(sent),
    sources: new Map(sources.map((path) => [path, changedAt(path)])),
  };
}

/** The source text of a bundle's entry module. It renders a component into the shadow root that LangGraph's client has made. */
const entryOf = (file: string): string => `
import components from ${JSON.stringify(file)};
export function render(name, place) {
  const target = document.createElement("div");
  document.getElementById(place).shadowRoot.appendChild(target);
  globalThis[Symbol.for("LGUI_EXT_STORE")].respond(place, components[name], target);
}
`;

/** A plugin that leaves out packages that the page provides. */
function given(names: readonly string[]): Plugin {
  return {
    name: "given",
    setup(build) {
      build.onResolve({ filter: /.*/ }, ({ path }) =>
        names.includes(path) ? { path, namespace: "given" } : undefined,
      );
      build.onLoad({ filter: /.*/, namespace: "given" }, ({ path }) => ({
        contents: `module.exports = globalThis[Symbol.for("LGUI_REQUIRE")](${JSON.stringify(path)});`,
        loader: "js",
      }));
    },
  };
}

function changedAt(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
