import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { onTestFinished } from "vitest";

const root = join(import.meta.dirname, "..", "..");
const cli = join(root, "dist", "src", "cli.js");

/** Builds the package unless that has been done: test files run concurrently, and each of them calls this. */
export async function build(): Promise<void> {
  const stamp = join(root, "dist", ".built");
  const lock = join(root, "dist", ".building");
  mkdirSync(join(root, "dist"), { recursive: true });
  while (!take(lock)) await setTimeout(50);
  try {
    // The pages of the documentation contain the README.
    if (timeOf(stamp) > Math.max(newest(["src", "actors"]), timeOf(join(root, "README.md")))) return;
    const started = Date.now();
    make();
    writeFileSync(stamp, "");
    utimesSync(stamp, started / 1000, started / 1000);
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

/** A lock that has not been touched for two minutes belongs to a dead process. */
function take(lock: string): boolean {
  if (Date.now() - timeOf(lock) > 120_000) rmSync(lock, { recursive: true, force: true });
  try {
    mkdirSync(lock);
    return true;
  } catch {
    return false;
  }
}

/** The modification time in milliseconds; 0 if the file does not exist. */
export const timeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

/** The latest modification time of the files in these folders, in milliseconds. */
export function newest(folders: readonly string[]): number {
  const files = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((name) =>
      join(root, folder, name),
    ),
  );
  return Math.max(...files.map(timeOf));
}

function make(): void {
  const { status, stdout, stderr } = spawnSync("npm", ["run", "build"], { cwd: root, encoding: "utf8" });
  if (status !== 0) throw new Error(`the build failed:\n${stdout}${stderr}`);
}

/** The environment without the variables that this shell happens to set. */
function environment(extra: Record<string, string>): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(
    ([name]) => !/^(HEDDLE_|PORT$|HOST$|NODE_OPTIONS$|VITEST)/.test(name),
  );
  return { ...Object.fromEntries(own), ...extra };
}

/**
 * Removes the capability with which root can write where permissions forbid it. Another user might have no access to
 * this Node and this checkout.
 */
const WITH_PERMISSIONS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"];

/** Runs a command that ends by itself. `canWriteAll: false`: permissions apply, even for root. */
export function heddle(
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string>; canWriteAll?: boolean } = {},
) {
  const { cwd = root, env = {}, canWriteAll = true } = options;
  const prefix = !canWriteAll && process.getuid?.() === 0 ? WITH_PERMISSIONS : [];
  const [command = "", ...rest] = [...prefix, process.execPath, cli, ...args];
  const { status, stdout, stderr } = spawnSync(command, rest, {
    cwd,
    env: environment(env),
    encoding: "utf8",
    timeout: 30_000,
  });
  return { status, stdout, stderr };
}

/** The same, without blocking this process. */
export async function heddleBeside(args: readonly string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [cli, ...args], { cwd: root, env: environment(env) });
  onTestFinished(() => void child.kill("SIGKILL"));
  const output = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output.stderr += text));
  const [status] = (await once(child, "close")) as [number | null];
  return { status, ...output };
}

/** Registers the function that ends a server. */
type AtEnd = (end: () => void) => void;

/** A server in a process of its own, as `heddle start` creates it. It ends with the test, unless `atEnd` is given. */
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

  static start(
    args: readonly string[],
    env: Record<string, string> = {},
    atEnd: AtEnd = onTestFinished,
  ): Promise<Running> {
    return Running.spawn("start", args, env, atEnd);
  }

  static spawn(
    command: "dev" | "start",
    args: readonly string[],
    env: Record<string, string> = {},
    atEnd: AtEnd = onTestFinished,
  ): Promise<Running> {
    const child = spawn(process.execPath, [cli, command, "--port", "0", ...args], {
      cwd: root,
      env: environment(env),
      stdio: ["ignore", "pipe", "pipe"],
    });
    atEnd(() => void child.kill("SIGKILL"));
    return Running.#listening(child);
  }

  /** Runs a script that starts a server, as npm runs those of `package.json`: the shell gets the signals. */
  static script(script: string, env: Record<string, string>): Promise<Running> {
    const child = spawn("sh", ["-c", script], {
      cwd: root,
      env: environment(env),
      stdio: ["ignore", "pipe", "pipe"],
      // A process group, so that a server that the shell has left behind ends with the test too.
      detached: true,
    });
    onTestFinished(() => {
      try {
        process.kill(-(child.pid ?? 0), "SIGKILL");
      } catch {
        // All processes have ended.
      }
    });
    return Running.#listening(child);
  }

  /** Waits until the server of a process listens. */
  static async #listening(child: ChildProcess): Promise<Running> {
    const output = { text: "" };
    const ended = once(child, "exit").then(([code]) => code as number | null);
    const url = await new Promise<string>((resolve, reject) => {
      const read = (text: string) => {
        output.text += text;
        // oxlint-disable-next-line no-control-regex -- on a terminal the address is coloured
        const found = /listens on (?:\u001b\[\d+m)*(http:[^\s\u001b]+)[\s\u001b]/.exec(output.text)?.[1];
        if (found !== undefined) resolve(found);
      };
      child.stdout?.setEncoding("utf8").on("data", read);
      child.stderr?.setEncoding("utf8").on("data", read);
      void ended.then((code) => reject(new Error(`it ended with ${code}:\n${output.text}`)));
    });
    return new Running(child, url, ended, output);
  }

  /** Everything that the process has printed. */
  get output(): string {
    return this.#output.text;
  }

  /** Waits until the process has printed `text` this many times. */
  async printed(text: string, times = 1): Promise<void> {
    const { stdout, stderr } = this.#child;
    const more = () => [stdout, stderr].map((stream) => once(stream ?? this.#child, "data"));
    while (this.output.split(text).length <= times) {
      const ended = this.#ended.then((code) =>
        Promise.reject(new Error(`it ended with ${code}:\n${this.output}`)),
      );
      await Promise.race([...more(), ended]);
    }
  }

  /** Resolves with the exit code when the process has ended. */
  get ended(): Promise<number | null> {
    return this.#ended;
  }

  /** Sends a signal to stop; resolves with the exit code. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    this.#child.kill(signal);
    return this.#ended;
  }
}
