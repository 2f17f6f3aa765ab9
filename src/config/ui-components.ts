import { statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Plugin } from "esbuild";

/** A file of a bundle, as it goes out. */
export interface ComponentFile {
  readonly type: string;
  readonly body: string;
}

/** The files of a bundle by name; `global` is the variable under which a page finds it. */
export interface ComponentBundle {
  readonly global: string;
  readonly files: ReadonlyMap<string, ComponentFile>;
}

/** What `ui` names in a configuration: for each graph the file whose default export has its components by name. */
export interface ComponentFiles {
  /** Absolute, by graph. */
  readonly files: { readonly [graph: string]: string };
  /** Packages that the page gives its components, beside React. */
  readonly shared: readonly string[];
}

/** The bundle of a graph's components; undefined: it has none. Rejects with what the bundler says. */
export type Components = (graph: string) => Promise<ComponentBundle> | undefined;

/** What the page that shows a component has loaded already: LangGraph's client gives it that. */
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
  /** Of what it was made, and when that was changed last. */
  readonly sources: ReadonlyMap<string, number>;
}

/** Bundles the components of a project: when they are first asked for, and anew once a file of theirs has changed. */
export function bundledComponents({ files, shared }: ComponentFiles): Components {
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
  // Only who has components needs it.
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
    // The entry is no file, and neither is what the page gives.
    .filter((path) => path !== "components.js" && !path.startsWith("given:"))
    .map((path) => resolve(home, path));
  return {
    global,
    files: new Map(sent),
    sources: new Map(sources.map((path) => [path, changedAt(path)])),
  };
}

/** Puts a component where LangGraph's client waits for it: into the shadow root that it has made. */
const entryOf = (file: string): string => `
import components from ${JSON.stringify(file)};
export function render(name, place) {
  const target = document.createElement("div");
  document.getElementById(place).shadowRoot.appendChild(target);
  globalThis[Symbol.for("LGUI_EXT_STORE")].respond(place, components[name], target);
}
`;

/** Packages that are not bundled: the page has them. */
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
