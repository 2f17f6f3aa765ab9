import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import type ts from "typescript-5";
import type { Compiler } from "./schema-writer.ts";

/** Packages that may contain the compiler, in order of preference. The second one is TypeScript 6, installed beside TypeScript 7. */
const PACKAGES = ["typescript", "@typescript/typescript6"];

/** The project has no TypeScript with a compiler API. */
export class NoCompilerError extends Error {
  override name = "NoCompilerError";
  /** The installed version of TypeScript; null when none is installed. */
  readonly installed: string | null;
  constructor(installed: string | null) {
    super("no compiler");
    this.installed = installed;
  }
}

/**
 * The TypeScript compiler that the file's project has installed, never Heddle's own.
 * @throws NoCompilerError when the project has no compiler that can be called
 */
export function compilerFor(file: string): Compiler {
  const require = createRequire(file);
  let installed: string | null = null;
  for (const name of PACKAGES) {
    try {
      const found = require(name) as Partial<Compiler>;
      // From version 7 on, the package has no compiler API in JavaScript.
      if (typeof found.createProgram === "function") return found as Compiler;
      installed ??= found.version ?? null;
    } catch {
      // The package is not installed, or cannot be loaded with `require`.
    }
  }
  throw new NoCompilerError(installed);
}

/**
 * Creates TypeScript programs. Declarations of packages are parsed once, and shared by later programs with
 * the same compiler and options.
 */
export class ProgramReader {
  readonly #parsed = new Map<string, ts.SourceFile>();
  #last: { readonly compiler: Compiler; readonly options: string } | undefined;

  /** The program of a file and its imports, with the options of its project's `tsconfig.json`. */
  read(compiler: Compiler, file: string): { readonly program: ts.Program; readonly hashes: Hashes } {
    const hashes: Record<string, string> = {};
    const note = (path: string, text: string) => {
      if (!isOfPackage(path)) hashes[path] = hashOf(text);
    };
    const options = optionsFor(compiler, file, note);
    const key = JSON.stringify(options);
    if (this.#last?.compiler !== compiler || this.#last.options !== key) this.#parsed.clear();
    this.#last = { compiler, options: key };
    const host = compiler.createCompilerHost(options, true);
    const parse = host.getSourceFile.bind(host);
    host.getSourceFile = (path, ...how) => {
      const known = this.#parsed.get(path);
      if (known !== undefined) return known;
      const parsed = parse(path, ...how);
      if (parsed === undefined) return undefined;
      if (isOfPackage(path)) this.#parsed.set(path, parsed);
      else note(path, parsed.text);
      return parsed;
    };
    const program = compiler.createProgram({ rootNames: [file], options, host });
    return { program, hashes };
  }
}

export type Hashes = { readonly [path: string]: string };

/** A hash of a file's text, without a byte order mark, because the compiler's text has none either. */
export const hashOf = (text: string): string =>
  createHash("sha1")
    .update(text.replace(/^\uFEFF/, ""))
    .digest("base64");

/** Whether a file belongs to a package. Such files do not change while the process runs, so they are parsed once. */
const isOfPackage = (path: string) => /[\\/]node_modules[\\/]/.test(path);

/** The compiler options for a file. Whatever the project sets, types are read in strict mode. */
function optionsFor(
  ts: Compiler,
  file: string,
  note: (path: string, text: string) => void,
): ts.CompilerOptions {
  const path = ts.findConfigFile(dirname(file), ts.sys.fileExists);
  const own = path === undefined ? {} : readOptions(ts, path, note);
  const { Node10, Classic, Bundler } = { Classic: 1, Node10: 2, Bundler: 100 };
  const { moduleResolution } = own;
  // The module resolutions `classic` and `node10` ignore `exports` of packages, through which LangGraph.js declares its
  // types.
  const isOld =
    moduleResolution === undefined
      ? hasOldResolutionByDefault(ts, own)
      : [Node10, Classic].includes(moduleResolution);
  return {
    ...own,
    ...(isOld && { module: ts.ModuleKind.ESNext, moduleResolution: Bundler }),
    noEmit: true,
    strict: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    incremental: false,
    composite: false,
    declaration: false,
  };
}

/**
 * True if TypeScript ignores `exports` of packages by default (the module resolutions `classic` and `node10`). The default
 * depends on the project's module format.
 */
function hasOldResolutionByDefault(ts: Compiler, { module }: ts.CompilerOptions): boolean {
  return module === undefined || module < ts.ModuleKind.Node16;
}

function readOptions(
  ts: Compiler,
  path: string,
  note: (path: string, text: string) => void,
): ts.CompilerOptions {
  const read = (name: string) => {
    const text = readFileSync(name, "utf8");
    note(name, text);
    return text;
  };
  const { config } = ts.readConfigFile(path, read) as { readonly config?: unknown };
  // The project's list of files is ignored: only the graph's own files are read.
  const host: ts.ParseConfigHost = { ...ts.sys, readFile: read, readDirectory: () => [] };
  return ts.parseJsonConfigFileContent(config ?? {}, host, dirname(path)).options;
}
