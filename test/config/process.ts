import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { onTestFinished } from "vitest";

const root = join(import.meta.dirname, "..", "..");
const cli = join(root, "dist", "src", "cli.js");

/** Builds what a user runs. */
export function build(): void {
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  const { status, stdout } = spawnSync(process.execPath, [tsc, "-p", join(root, "tsconfig.build.json")], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`the build failed:\n${stdout}`);
}

/** Without what this shell happens to set. */
function environment(extra: Record<string, string>): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(
    ([name]) => !/^(HEDDLE_|PORT$|HOST$|NODE_OPTIONS$|VITEST)/.test(name),
  );
  return { ...Object.fromEntries(own), ...extra };
}

/** Runs a command that ends by itself. */
export function heddle(
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string> } = {},
) {
  const { cwd = root, env = {} } = options;
  const { status, stdout, stderr } = spawnSync(process.execPath, [cli, ...args], {
    cwd,
    env: environment(env),
    encoding: "utf8",
    timeout: 30_000,
  });
  return { status, stdout, stderr };
}

/** A server in a process of its own, as `heddle start` makes it. It ends with the test. */
export class Running {
  readonly url: string;
  readonly #child: ChildProcess;
  readonly #ended: Promise<number | null>;
  readonly #output: { text: string };

  private constructor(
    child: ChildProcess,
    url: string,
    ended: Promise<number | null>,
    output: { text: string },
  ) {
    this.#child = child;
    this.url = url;
    this.#ended = ended;
    this.#output = output;
  }

  static async start(args: readonly string[], env: Record<string, string> = {}): Promise<Running> {
    const child = spawn(process.execPath, [cli, "start", "--port", "0", ...args], {
      cwd: root,
      env: environment(env),
      stdio: ["ignore", "pipe", "pipe"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    const output = { text: "" };
    const ended = once(child, "exit").then(([code]) => code as number | null);
    const url = await new Promise<string>((resolve, reject) => {
      const read = (text: string) => {
        output.text += text;
        const found = /listens on (http:\S+)\n/.exec(output.text)?.[1];
        if (found !== undefined) resolve(found);
      };
      child.stdout.setEncoding("utf8").on("data", read);
      child.stderr.setEncoding("utf8").on("data", read);
      void ended.then((code) => reject(new Error(`it ended with ${code}:\n${output.text}`)));
    });
    return new Running(child, url, ended, output);
  }

  /** All that it has printed. */
  get output(): string {
    return this.#output.text;
  }

  /** Waits until it has printed `text`. */
  async printed(text: string): Promise<void> {
    while (!this.output.includes(text))
      await Promise.race([once(this.#child.stdout ?? this.#child, "data"), this.#ended]);
  }

  /** Asks it to stop; resolves with its exit code. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    this.#child.kill(signal);
    return this.#ended;
  }
}
