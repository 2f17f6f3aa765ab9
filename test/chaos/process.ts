import { spawn, type ChildProcess } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import type { Program } from "../fixtures/compile.ts";

/** How many runs may be in progress: in all, of a tenant, of the graph. */
export interface Slots {
  readonly all?: number;
  readonly perTenant?: number;
  readonly perGraph?: { readonly chaos: number };
}

export interface Setup {
  readonly data: string;
  readonly effects: string;
  /** A fault put in on purpose, to see that it is found. */
  readonly plant?: string;
  /** Milliseconds that what was made for one run is kept for readers. */
  readonly linger: number;
  readonly slots?: Slots;
  /** Does it serve the graph in LangGraph.js, too? */
  readonly hosted?: boolean;
  /** The server kills itself when it comes by this failpoint for the n-th time. */
  readonly dieAt?: { readonly place: string; readonly count: number };
}

/** One life of the server: a process of its own on a real directory, that is killed or stopped. */
export class Life {
  readonly #child: ChildProcess;
  readonly #gone: Promise<string>;
  #port: number | undefined;
  #stderr = "";
  ended: string | undefined;

  constructor({ script }: Program, setup: Setup) {
    const env = {
      ...process.env,
      HEDDLE_CHAOS: JSON.stringify(setup),
      HEDDLE_CHAOS_EFFECTS: setup.effects,
    };
    this.#child = spawn(process.execPath, ["--enable-source-maps", script], {
      env,
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-8000);
    });
    this.#child.on("message", (message: { port?: number }) => {
      this.#port = message.port;
    });
    this.#gone = new Promise((resolve) => {
      this.#child.once("exit", (code, signal) => {
        this.ended = String(signal ?? code);
        resolve(this.ended);
      });
    });
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** The port, once `/ok` is answered; undefined when it ended, or did not come up within `ms`. */
  async ready(ms: number): Promise<number | undefined> {
    const deadline = performance.now() + ms;
    while (performance.now() < deadline && this.ended === undefined) {
      if (this.#port !== undefined) {
        try {
          const answer = await fetch(`http://127.0.0.1:${this.#port}/ok`);
          if (answer.status === 200) return this.#port;
        } catch {
          // Not listening yet.
        }
      }
      await sleep(5);
    }
    return undefined;
  }

  /** Resolves with how it ended, when it does. */
  get gone(): Promise<string> {
    return this.#gone;
  }

  /** Asks it to stop in good order; asked twice, it ends at once. */
  stop(): void {
    this.#child.kill("SIGTERM");
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#gone;
  }
}
