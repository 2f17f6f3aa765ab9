import { posix } from "node:path";
import {
  ADAPTERS,
  BROWSER,
  floors,
  GUEST,
  keepers,
  processWide,
  timeAndRandomness,
  timeModules,
} from "./plan.ts";
import type { Source } from "./source.ts";

/** The room that a file belongs to; undefined: it stands outside the plan. */
export function roomOf(path: string): string | undefined {
  if (Object.hasOwn(floors, path)) return path;
  const [top = "", next = ""] = path.split("/");
  const room = top === "src" ? `${top}/${next}` : top;
  return Object.hasOwn(floors, room) ? room : undefined;
}

/** Everything that breaks the plan, each as one line that names the file. */
export function breaches(sources: readonly Source[]): string[] {
  return sources.flatMap((source) => [
    ...arrows(source),
    ...packages(source),
    ...time(source),
    ...singletons(source),
  ]);
}

function arrows({ path, imports }: Source): string[] {
  const room = roomOf(path);
  if (room === undefined) return [`${path} is in no room of the plan`];
  return imports
    .filter((name) => name.startsWith("."))
    .map((name) => posix.join(posix.dirname(path), name))
    .filter((target) => {
      const to = roomOf(target);
      return to !== room && (to === undefined || !floors[room]?.includes(to));
    })
    .map((target) => `${path} must not import ${target}`);
}

function packages({ path, imports }: Source): string[] {
  if (path.startsWith(`${GUEST}/`)) return [];
  return imports
    .filter((name) => !name.startsWith(".") && !timeModules.includes(name))
    .filter((name) => !keepersOf(name).some((start) => path.startsWith(start)))
    .map((name) => `${path} must not import ${name}: ${keepersOf(name).join(", ") || "nobody"} may`);
}

const keepersOf = (name: string): readonly string[] =>
  Object.hasOwn(keepers, name) ? (keepers[name] ?? []) : [];

function time({ path, imports, code }: Source): string[] {
  if ([ADAPTERS, `${GUEST}/`, BROWSER].some((room) => path.startsWith(room))) return [];
  const called = timeAndRandomness.map((rule) => rule.exec(code)?.[0]).filter((hit) => hit !== undefined);
  const brought = imports.filter((name) => timeModules.includes(name));
  return [...called, ...brought].map((hit) => `${path} must not use ${hit.trim()}: take the port`);
}

/** What a module keeps for all servers of a process. Constant tables are filled where they are made. */
const SINGLETON =
  /^(?:export )?(?:(?:let|var) \w+|const \w+(?:: (?!readonly|Readonly)[^=]+)? = (?:new (?:Weak)?(?:Map|Set)(?:<[^=]*>)?\(\)|\[\]|\{\});)/gm;

function singletons({ path, code }: Source): string[] {
  // A page's script lives once in each page.
  if (Object.hasOwn(processWide, path) || path.startsWith(BROWSER)) return [];
  return [...code.matchAll(SINGLETON)].map(([hit]) => `${path} keeps state in its module: ${hit}`);
}
