import type { Source } from "./source.ts";

interface Exported {
  readonly name: string;
  readonly path: string;
}

const DECLARATION =
  /^export\s+(?:declare\s+)?(?:abstract\s+|async\s+)?(?:const\s+enum|function\s*\*?|class|interface|type|enum|const|let|var)\s+([\w$]+)/gm;
const PATTERN = /^export\s+(?:const|let)\s*[[{]([^\]}]*)[\]}]\s*=/gm;
const LIST = /^export\s+(?:type\s+)?\{([^}]*)\}(?!\s*from\b)/gm;

/** The names that a file declares and exports, without those that it re-exports from other files. */
export function exportsOf({ path, code }: Source): readonly Exported[] {
  const declared = [...code.matchAll(DECLARATION)].map(([, name = ""]) => name);
  const listed = [...code.matchAll(LIST), ...code.matchAll(PATTERN)].flatMap(([, names = ""]) =>
    names
      .split(",")
      .map((name) => /(\w+)\s*$/.exec(name)?.[1] ?? "")
      .filter((name) => name !== "" && !isImported(code, name)),
  );
  return [...new Set([...declared, ...listed])].map((name) => ({ name, path }));
}

const isImported = (code: string, name: string): boolean =>
  new RegExp(`^import\\b[^;]*\\b${name}\\b`, "m").test(code);

/** Names of the graph API: a type, and the function that makes it. */
const MAKERS: ReadonlySet<string> = new Set(["branch", "send", "to", "tool"]);

/** Names that several files export, and names that differ by case alone, each as one line. */
export function clashes(sources: readonly Source[]): readonly string[] {
  const found = new Map<string, Exported[]>();
  for (const exported of sources.flatMap(exportsOf)) {
    const key = exported.name.toLowerCase().replaceAll("_", "");
    found.set(key, [...(found.get(key) ?? []), exported]);
  }
  return [...found]
    .filter(([key, same]) => same.length > (MAKERS.has(key) && isOneFile(same) ? 2 : 1))
    .map(([, same]) =>
      same
        .map(({ name, path }) => `${name} in ${path}`)
        .toSorted()
        .join(", "),
    );
}

const isOneFile = (all: readonly Exported[]): boolean => new Set(all.map(({ path }) => path)).size === 1;
