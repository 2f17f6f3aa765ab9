import { posix } from "node:path";
import {
  ADAPTERS,
  BROWSER_CODE,
  GUIDE_PAGES,
  allowedImports,
  USER_CODE,
  packageOwners,
  processWide,
  timeAndRandomness,
  timeModules,
} from "./plan.ts";
import type { Source } from "./source.ts";

/** The folder of the map that a file belongs to; undefined if the map does not contain it. */
export function folderOf(path: string): string | undefined {
  if (Object.hasOwn(allowedImports, path)) return path;
  const [top = "", next = ""] = path.split("/");
  const folder = top === "src" ? `${top}/${next}` : top;
  return Object.hasOwn(allowedImports, folder) ? folder : undefined;
}

/** All breaches of the map, each as one line that names the file. */
export function breaches(sources: readonly Source[]): string[] {
  return sources.flatMap((source) => [
    ...forbiddenImports(source),
    ...forbiddenPackages(source),
    ...timeOrRandomness(source),
    ...singletons(source),
  ]);
}

function forbiddenImports({ path, imports }: Source): string[] {
  const folder = folderOf(path);
  if (folder === undefined) return [`${path} is in no folder of the map`];
  return imports
    .filter((name) => name.startsWith("."))
    .map((name) => posix.join(posix.dirname(path), name))
    .filter((target) => path !== GUIDE_PAGES || !target.endsWith(".md"))
    .filter((target) => {
      const to = folderOf(target);
      return to !== folder && (to === undefined || !allowedImports[folder]?.includes(to));
    })
    .map((target) => `${path} must not import ${target}`);
}

function forbiddenPackages({ path, imports }: Source): string[] {
  if (path.startsWith(`${USER_CODE}/`)) return [];
  return imports
    .filter((name) => !name.startsWith(".") && !timeModules.includes(name))
    .filter((name) => !ownersOf(name).some((start) => path.startsWith(start)))
    .map((name) => `${path} must not import ${name}: ${ownersOf(name).join(", ") || "nobody"} may`);
}

const ownersOf = (name: string): readonly string[] =>
  Object.hasOwn(packageOwners, name) ? (packageOwners[name] ?? []) : [];

function timeOrRandomness({ path, imports, code }: Source): string[] {
  if ([ADAPTERS, `${USER_CODE}/`, BROWSER_CODE].some((folder) => path.startsWith(folder))) return [];
  const called = timeAndRandomness.map((rule) => rule.exec(code)?.[0]).filter((hit) => hit !== undefined);
  const brought = imports.filter((name) => timeModules.includes(name));
  return [...called, ...brought].map((hit) => `${path} must not use ${hit.trim()}: take the port`);
}

/** State that a module keeps for all servers of a process. Constant tables are filled where they are declared. */
const SINGLETON =
  /^(?:export )?(?:(?:let|var) \w+|const \w+(?:: (?!readonly|Readonly)[^=]+)? = (?:new (?:Weak)?(?:Map|Set)(?:<[^=]*>)?\(\)|\[\]|\{\});)/gm;

function singletons({ path, code }: Source): string[] {
  // A script of a page exists once in each page.
  if (Object.hasOwn(processWide, path) || path.startsWith(BROWSER_CODE)) return [];
  return [...code.matchAll(SINGLETON)].map(([hit]) => `${path} keeps state in its module: ${hit}`);
}
