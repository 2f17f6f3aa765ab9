import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compile, type Program } from "../fixtures/compile.ts";

const root = join(import.meta.dirname, "..", "..");

export interface ServerOptions {
  /** The limit of open descriptors of the process; default: that of this process. */
  readonly descriptors?: number;
  /** Members of the configuration file in addition to `graphs`. */
  readonly config?: object;
  readonly transport?: "uws" | "node";
}

/** The built server in a process and on a data directory of its own, with a key for each of two tenants. */
export class Server {
  readonly url: string;
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly #graphs: Program;
  readonly #output: { text: string };

  private constructor(
    child: ChildProcess,
    folder: string,
    graphs: Program,
    url: string,
    output: { text: string },
  ) {
    this.#child = child;
    this.#folder = folder;
    this.#graphs = graphs;
    this.url = url;
    this.#output = output;
  }

  static async start({ descriptors, config, transport }: ServerOptions): Promise<Server> {
    const folder = mkdtempSync(join(tmpdir(), "heddle-siege-"));
    const file = join(folder, "heddle.json");
    const compiled = await compile(join(import.meta.dirname, "graphs.ts"));
    const graphs = Object.fromEntries(
      ["chat", "keep", "make", "alarm"].map((name) => [name, `${compiled.script}:${name}`]),
    );
    writeFileSync(file, JSON.stringify({ graphs, ...config }));
    const cli = join(root, "dist", "src", "cli.js");
    const options = ["--config", file, "--data", join(folder, "data"), "--port", "0"];
    if (transport !== undefined) options.push("--transport", transport);
    const command = [process.execPath, cli, "start", ...options];
    // `exec` makes the measured and stopped process the server itself.
    const limit = descriptors === undefined ? "" : `ulimit -n ${descriptors}; `;
    const child = spawn("bash", ["-c", `${limit}exec "$@"`, "bash", ...command], {
      cwd: root,
      env: { ...process.env, NODE_OPTIONS: "", HEDDLE_API_KEYS: `${keys.hostile},${keys.other}` },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const output = { text: "" };
    try {
      const url = await new Promise<string>((resolve, reject) => {
        const read = (text: string) => {
          output.text = (output.text + text).slice(-100_000);
          const found = /listens on (http:\S+)\n/.exec(output.text)?.[1];
          if (found !== undefined) resolve(found.replace("localhost", "127.0.0.1"));
        };
        child.stdout.setEncoding("utf8").on("data", read);
        child.stderr.setEncoding("utf8").on("data", read);
        child.once("exit", (code) => reject(new Error(`the server ended with ${code}:\n${output.text}`)));
      });
      return new Server(child, folder, compiled, url, output);
    } catch (cause) {
      rmSync(folder, { recursive: true, force: true });
      compiled.remove();
      throw cause;
    }
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Returns the server's latest output. */
  get output(): string {
    return this.#output.text;
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  async stop(): Promise<void> {
    if (!this.hasEnded) {
      const ended = once(this.#child, "exit");
      this.#child.kill("SIGKILL");
      await ended;
    }
    rmSync(this.#folder, { recursive: true, force: true });
    this.#graphs.remove();
  }
}

/** Keys as in the server's list: tenant and key. */
const keys = { hostile: "hostile:hostile-key", other: "other:other-key" };

/** Keys as request headers. */
export const HOSTILE_KEY = { "x-api-key": "hostile-key" };
export const OTHER_KEY = { "x-api-key": "other-key" };
