import { statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Plugin } from "esbuild";

/** A file of a bundle, in the form in which it is sent. */
export interface ComponentFile {
  readonly type: string;
  readonly body: string;
}

/** The files of a bundle by name. `global` is the name of the variable that holds the bundle in a page. */
export interface ComponentBundle {
  readonly global: string;
  readonly files: ReadonlyMap<string, ComponentFile>;
}

/** The setting `ui` of a configuration: for each graph, the file whose default export has its components by name. */
export interface UiConfig {
  /** Absolute paths, by graph. */
  readonly files: { readonly [graph: string]: string };
  /** Packages that the page provides to components, in addition to React. */
  readonly shared: readonly string[];
}

/** Returns the bundle of a graph's components; undefined when it has none. Rejects with the bundler's error. */
export type Components = (graph: string) => Promise<ComponentBundle> | undefined;

/** Packages that the page has loaded already; LangGraph's client provides them to the component. */
const GIVEN = [
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
  /** The source files, each with its modification time at the build. */
  readonly sources: ReadonlyMap<string, number>;
}

/** Bundles the components of a project, at the first request and again when a source file has changed. */
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
  // esbuild is loaded on demand, because only projects with components need it.
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
    plugins: [given([...GIVEN, ...shared])],
  });
  const sent = outputFiles.flatMap(({ path, text }): [string, ComponentFile][] => {
    const name = path.replace(/^.*[/\\]/, "");
    const type = TYPES.find(([ending]) => name.endsWith(ending))?.[1];
    return type === undefined ? [] : [[name, { type, body: text }]];
  });
  const home = dirname(file);
  const sources = Object.keys(metafile.inputs)
    // Leaves out the entry, which is not a file, and the packages that the page provides.
    .filter((path) => path !== "components.js" && !path.startsWith("given:"))
    .map((path) => resolve(home, path));
  return {
    global,
    files: new Map(sent),
    sources: new Map(sources.map((path) => [path, changedAt(path)])),
  };
}

/** The entry of a bundle: it renders a component into the shadow root that LangGraph's client has made. */
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
