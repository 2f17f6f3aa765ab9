import { readFile, stat } from "node:fs/promises";
import type { GraphTypesReader, TypeSchemas } from "../ports/graph-type-schemas.ts";
import type { ModuleExport } from "../model/module-export.ts";
import type { Logger } from "../ports/logger.ts";
import type { Cancel, Scheduler } from "../ports/scheduler.ts";
import type { WorkerThread } from "../ports/worker-thread.ts";
import { hashOf, type Hashes } from "./project-program.ts";
import type { GraphTypesMessage, GraphTypesRequest } from "./worker-messages.ts";

/** Milliseconds: the timeout for reading the types of one graph. After it, the worker thread is ended. */
export const READ_TYPES_TIMEOUT = 30_000;
/**
 * Milliseconds that the worker thread stays alive to wait for another graph. A further graph is read faster, because the
 * thread has already parsed the declarations of packages.
 */
const IDLE_MS = 10_000;
/**
 * If reading a graph's types ended before the graph's files were known, the result is dropped from the cache at most this many
 * milliseconds later, so that the next request reads the types again. Without the files' names, changes of the files cannot be noticed.
 */
const RETRY_PAUSE_MS = 60_000;

export interface TypesReaderDeps {
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  /** Starts the thread that reads types. */
  spawn(): WorkerThread<GraphTypesRequest, GraphTypesMessage>;
  readonly timeout?: number;
}

type Schemas = ReadonlyMap<string, TypeSchemas> | null;

interface Reading {
  readonly graph: ModuleExport;
  /** Hashes of the project's own files that contain the graph's types, by path; null until the worker has sent them. */
  hashes: Hashes | null;
  readonly schemas: Promise<Schemas>;
  readonly settle: (schemas: Schemas) => void;
}

/**
 * Reads the types of graphs in a worker thread, one graph at a time, and caches their schemas until one of their files changes. A graph
 * whose types take too much time or memory has no schemas; each such failure is logged.
 */
export class TypesReader implements GraphTypesReader {
  readonly #deps: TypesReaderDeps;
  /** Finished and pending results, by export. */
  readonly #readings = new Map<string, Reading>();
  readonly #queue: Reading[] = [];
  #current: Reading | undefined;
  #worker: WorkerThread<GraphTypesRequest, GraphTypesMessage> | undefined;
  #timer: Cancel | undefined;
  #retry: Cancel | undefined;
  #hasHinted = false;
  #isClosed = false;

  constructor(deps: TypesReaderDeps) {
    this.#deps = deps;
  }

  async read(graph: ModuleExport): Promise<Schemas> {
    const file = await typedFile(graph.file);
    if (file === undefined) return null;
    const key = JSON.stringify([file, graph.name]);
    const known = this.#readings.get(key);
    if (known !== undefined && (await isCurrent(known))) return known.schemas;
    if (this.#isClosed) return null;
    // Another call may have started the read while this call compared the files.
    const newest = this.#readings.get(key);
    if (newest !== undefined && newest !== known) return newest.schemas;
    let settle: Reading["settle"] = () => {};
    const schemas = new Promise<Schemas>((resolve) => (settle = resolve));
    const reading: Reading = { graph: { ...graph, file }, hashes: null, schemas, settle };
    this.#readings.set(key, reading);
    this.#queue.push(reading);
    this.#readNext();
    return schemas;
  }

  /** Ends the worker thread. Pending reads resolve with null. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#retry?.();
    for (const { settle } of this.#queue.splice(0)) settle(null);
    await this.#endWorker();
  }

  #readNext(): void {
    if (this.#current !== undefined) return;
    const reading = this.#queue.shift();
    this.#timer?.();
    if (reading === undefined) {
      this.#timer = this.#deps.scheduler.after(IDLE_MS, () => void this.#endWorker());
      return;
    }
    this.#current = reading;
    const { timeout = READ_TYPES_TIMEOUT } = this.#deps;
    const late = () => this.#fail(`it took more than ${timeout / 1000} s`);
    this.#timer = this.#deps.scheduler.after(timeout, late);
    this.#worker ??= this.#start();
    this.#worker.post(reading.graph);
  }

  #start(): WorkerThread<GraphTypesRequest, GraphTypesMessage> {
    const worker = this.#deps.spawn();
    worker.onMessage((message) => {
      if (this.#worker === worker) this.#receive(message);
    });
    worker.onEnd((why) => {
      if (this.#worker !== worker) return;
      this.#worker = undefined;
      if (this.#current !== undefined) this.#fail(why);
    });
    return worker;
  }

  #receive(message: GraphTypesMessage): void {
    const reading = this.#current;
    if (reading === undefined) return;
    switch (message.t) {
      case "files":
        reading.hashes = message.hashes;
        return;
      case "schemas":
        return this.#settle(message.schemas && new Map(Object.entries(message.schemas)));
      case "no-compiler":
        this.#hint(reading.graph.file, message.installed);
        return this.#settle(null);
      case "failed":
        this.#warn(reading, message.why);
        return this.#settle(null);
    }
  }

  #settle(schemas: Schemas): void {
    this.#answer(schemas);
    this.#readNext();
  }

  #answer(schemas: Schemas): void {
    const reading = this.#current;
    this.#current = undefined;
    reading?.settle(schemas);
    if (reading?.hashes !== null || this.#isClosed) return;
    this.#retry ??= this.#deps.scheduler.after(RETRY_PAUSE_MS, () => {
      this.#retry = undefined;
      for (const [key, known] of this.#readings)
        if (known.hashes === null && known !== this.#current && !this.#queue.includes(known))
          this.#readings.delete(key);
    });
  }

  /** Handles a failure of the worker thread: the current graph gets no schemas, and the next one gets a new thread. */
  #fail(why: string): void {
    const reading = this.#current;
    if (reading !== undefined) this.#warn(reading, why);
    void this.#endWorker();
    if (!this.#isClosed) this.#readNext();
  }

  async #endWorker(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    this.#timer?.();
    this.#answer(null);
    await worker?.terminate();
  }

  #warn({ graph: { file, name } }: Reading, why: string): void {
    this.#deps.logger.warn("the schemas of a graph cannot be read from its types", {
      file,
      export: name,
      why,
    });
  }

  #hint(file: string, installed: string | null): void {
    if (this.#hasHinted) return;
    this.#hasHinted = true;
    const why =
      installed === null
        ? "its project has no TypeScript: npm install --save-dev typescript@6"
        : `TypeScript ${installed} has no compiler that can be called: npm install --save-dev @typescript/typescript6`;
    this.#deps.logger.info("graphs have schemas without the types of their state", { file, why });
  }
}

/** True if a reading is still valid: none of its files has changed since, or its files are unknown. */
async function isCurrent({ hashes }: Reading): Promise<boolean> {
  if (hashes === null) return true;
  const same = Object.entries(hashes).map(async ([path, hash]) => {
    const text = await readFile(path, "utf8").catch(() => undefined);
    return text !== undefined && hashOf(text) === hash;
  });
  return (await Promise.all(same)).every(Boolean);
}

/**
 * The file with the types of a graph file: the file itself, or the declaration file beside a compiled one; undefined if
 * there is none.
 */
async function typedFile(file: string): Promise<string | undefined> {
  if (/\.[cm]?tsx?$/.test(file)) return file;
  const declarations = file.replace(/\.([cm]?)js$/, ".d.$1ts");
  if (declarations === file) return undefined;
  return stat(declarations).then(
    () => declarations,
    () => undefined,
  );
}
