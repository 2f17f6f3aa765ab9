import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Client } from "@langchain/langgraph-sdk";
import type { Running } from "./process.ts";

/** A folder for projects, which is deleted after the tests. */
export class Home {
  readonly path = mkdtempSync(join(tmpdir(), "heddle-home-"));

  /**
   * @param isInstalled whether the projects have the package in `node_modules`. If not, older versions of Node need a
   * thread that resolves it, which takes a quarter of the CPU time of a start.
   */
  constructor({ isInstalled = false } = {}) {
    if (isInstalled) install(this.path);
  }

  /** Writes a project and returns its configuration file. */
  project(name: string, files: Readonly<Record<string, string | object>>): string {
    for (const [path, content] of Object.entries(files)) {
      const file = join(this.path, name, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
    }
    return join(this.path, name, "heddle.json");
  }

  data(name: string): string {
    return join(this.path, "data", name);
  }

  remove(): void {
    // A process that was left behind may still write. The retries of `rmSync` do not look for new files, so it is called again.
    for (let left = 10; ; left--) {
      try {
        rmSync(this.path, { recursive: true, force: true, maxRetries: 2, retryDelay: 100 });
        return;
      } catch (cause) {
        if (left === 0) throw cause;
      }
    }
  }
}

/** Installs the package in a folder as npm links it. */
export function install(folder: string): void {
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(join(import.meta.dirname, "..", ".."), join(folder, "node_modules", "heddle"));
}

/** A graph of one node that writes this text. */
export const saying = (says: string) => `graph({
  state: { said: list() },
  nodes: { say: async () => ({ said: [${says}] }) },
  edges: { start: "say" },
})`;

export const connect = ({ url }: Running): Client =>
  new Client({ apiUrl: url, callerOptions: { maxRetries: 0 } });

/** The first text that a run on a new thread has written. */
export async function say(server: Running, graph: string): Promise<unknown> {
  const client = connect(server);
  const { thread_id } = await client.threads.create();
  const { said } = (await client.runs.wait(thread_id, graph, { input: {} })) as { said?: unknown[] };
  return said?.[0];
}
