import { spawn, type ChildProcess } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import type { Program } from "../fixtures/compile.ts";

/** The limits on concurrent runs: in total, of a tenant, of the graph. */
export interface Slots {
  readonly all?: number;
  readonly perTenant?: number;
  readonly perGraph?: { readonly chaos: number };
}

export interface Setup {
  readonly data: string;
  readonly effects: string;
  /** The name of a planted fault, to check that it is found. */
  readonly plant?: string;
  /** Milliseconds that temporary threads are kept for readers. */
  readonly linger: number;
  readonly slots?: Slots;
  /** True if it also serves the graph in LangGraph.js. */
  readonly hosted?: boolean;
  /** The server kills itself when it passes this failpoint for the n-th time. */
  readonly dieAt?: { readonly place: string; readonly count: number };
}

/** One life of the server: a process on a real directory that is killed or stopped. */
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

  /** Resolves with the port when `/ok` answers; undefined if the process ended or was not ready within `ms`. */
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

  /** Resolves with the exit code or signal when the process has ended. */
  get gone(): Promise<string> {
    return this.#gone;
  }

  /** Asks for a graceful stop. A second call ends the process at once. */
  stop(): void {
    this.#child.kill("SIGTERM");
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#gone;
  }
}
