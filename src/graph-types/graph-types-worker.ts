import { GraphSchemaReader } from "./graph-schema-reader.ts";
import { compilerFor, NoCompilerError, ProgramReader } from "./project-program.ts";
import type { GraphTypesMessage, GraphTypesRequest } from "./worker-messages.ts";

/** Reads types in the worker thread. For each graph, it sends the hashes of its files, then its schemas or the reason why there are none. */
export class GraphTypesWorker {
  readonly #programs = new ProgramReader();
  readonly #post: (message: GraphTypesMessage) => void;

  constructor(post: (message: GraphTypesMessage) => void) {
    this.#post = post;
  }

  read({ file, name }: GraphTypesRequest): void {
    try {
      const compiler = compilerFor(file);
      const { program, hashes } = this.#programs.read(compiler, file);
      this.#post({ t: "files", hashes });
      this.#post({ t: "schemas", schemas: new GraphSchemaReader(compiler, program).read(file, name) });
    } catch (cause) {
      if (cause instanceof NoCompilerError) this.#post({ t: "no-compiler", installed: cause.installed });
      else this.#post({ t: "failed", why: cause instanceof Error ? cause.message : String(cause) });
    }
  }
}
