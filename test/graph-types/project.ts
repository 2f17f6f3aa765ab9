import { copyFileSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { type Home } from "../config/project.ts";
import { langGraphModules } from "../langgraph/support.ts";

const root = join(import.meta.dirname, "../..");

/** Folders of the compilers that a project may have. */
export const COMPILERS = {
  "TypeScript 5": join(root, "test/typescript-versions/5/node_modules/typescript"),
  "TypeScript 6": join(root, "test/typescript-versions/6/node_modules/typescript"),
  "TypeScript 7": join(root, "node_modules/typescript"),
};

/**
 * Writes a project that has LangGraph.js, and the files of `test/fixtures/langgraph` that are named.
 * @param compiler its TypeScript; undefined: none
 * @returns its folder
 */
export function writeProject(
  home: Home,
  name: string,
  compiler: keyof typeof COMPILERS | undefined,
  files: Readonly<Record<string, string | object>>,
  fixtures: readonly string[] = [],
): string {
  const folder = join(home.path, name);
  home.project(name, { "package.json": { type: "module" }, ...files });
  const modules = join(folder, "node_modules");
  mkdirSync(modules, { recursive: true });
  symlinkSync(join(langGraphModules, "@langchain"), join(modules, "@langchain"));
  if (compiler !== undefined) symlinkSync(COMPILERS[compiler], join(modules, "typescript"));
  for (const fixture of fixtures)
    copyFileSync(join(root, "test/fixtures/langgraph", fixture), join(folder, fixture));
  return folder;
}
