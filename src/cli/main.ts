import { enableCompileCache } from "../graph-loader/compile-cache.ts";
import { ServiceError } from "../model/errors.ts";
import { systemClock } from "../platform/clock.ts";
import { systemScheduler } from "../platform/scheduler.ts";
import { escapeLines, type OutputStream } from "../platform/terminal.ts";
import { VERSION } from "../platform/version.ts";
import type { OnProgress } from "../ports/work-progress.ts";
import { HELP, parseCommandLine, portHint, type Invocation } from "./command-line.ts";

const { stdout, stderr } = process;
/** If the stream is a terminal, escapes control characters: text that was read from a disk may contain any. */
const shown = (text: string, { isTTY }: OutputStream) => (isTTY === true ? escapeLines(text) : text);
const say = (line: string) => void stdout.write(`${shown(line, stdout)}\n`);

/** Runs a task that may take long, and shows its progress on stderr. */
async function withProgress(
  work: (say: (line: string) => void, onProgress: OnProgress) => Promise<void>,
): Promise<void> {
  const { ProgressDisplay } = await import("./progress-display.ts");
  const display = new ProgressDisplay({
    clock: systemClock,
    scheduler: systemScheduler,
    ...(stderr.isTTY && { terminal: stderr }),
    line: (text) => stderr.write(`${text}\n`),
  });
  try {
    await work((line) => display.beside(() => say(line)), display.onProgress);
  } finally {
    display.end();
  }
}

// Each command loads only the modules that it needs, so that it starts fast.
async function run(invocation: Invocation): Promise<void> {
  switch (invocation.command) {
    case "help": {
      const { topic } = invocation;
      if (topic === undefined) return void stdout.write(HELP);
      return void stdout.write((await import("./help.ts")).commandHelp(topic));
    }
    case "version":
      return say(VERSION);
    case "refused":
      stderr.write(`heddle: ${invocation.why}\nTry: heddle --help\n`);
      process.exitCode = 2;
      return;
    case "dev":
    case "start":
      return (await import("./serve.ts")).serve(invocation);
    case "init": {
      const { initProject } = await import("./init.ts");
      for (const path of initProject(invocation.directory)) say(`wrote ${path}`);
      const enter = invocation.directory === "." ? "" : `cd ${JSON.stringify(invocation.directory)} && `;
      return say(`Next: ${enter}npm install && npm run dev`);
    }
    case "build": {
      const { writeContainerFiles } = await import("./container-files.ts");
      const { paths, notes } = writeContainerFiles(invocation);
      for (const path of paths) say(`wrote ${path}`);
      for (const note of notes) say(`note: ${note}`);
      return;
    }
    case "cluster": {
      if (invocation.action !== "status") {
        const { drainNode, undrainNode } = await import("./cluster-drain.ts");
        return (invocation.action === "drain" ? drainNode : undrainNode)(invocation, say);
      }
      const { showClusterStatus } = await import("./cluster-status.ts");
      if ((await showClusterStatus(invocation.place, say)) > 0) process.exitCode = 1;
      return;
    }
    case "check": {
      const { check } = await import("./maintenance.ts");
      return withProgress(async (sayBeside, onProgress) => {
        if ((await check(invocation.data, sayBeside, onProgress)) > 0) process.exitCode = 1;
      });
    }
    case "repair": {
      const { accept, check, repair } = await import("./maintenance.ts");
      return withProgress(async (sayBeside, onProgress) => {
        if (invocation.accept) return accept(invocation.data, sayBeside, onProgress);
        await repair(invocation.data, onProgress);
        sayBeside(`${invocation.data} was rebuilt`);
        if ((await check(invocation.data, sayBeside, onProgress)) > 0) process.exitCode = 1;
      });
    }
    case "inspect": {
      const { showInspector } = await import("./show-inspector.ts");
      await showInspector(invocation, process.env, say);
      return;
    }
    case "conformance": {
      const { checkConformance } = await import("./conformance.ts");
      // On a terminal, progress is shown in one line that is rewritten. With some servers, the checks take minutes.
      const show = (line: string) => void (stderr.isTTY && stderr.write(`\r\x1b[K${line}`));
      if ((await checkConformance(invocation, say, show)) > 0) process.exitCode = 1;
      return;
    }
    case "prove":
      process.exitCode = await (
        await import("./prove-machine-claim.ts")
      ).prove(invocation, process.cwd(), say);
      return;
    case "backup": {
      const { backup } = await import("./maintenance.ts");
      await withProgress((_, onProgress) => backup(invocation.data, invocation.target, onProgress));
      return say(`${invocation.data} was copied to ${invocation.target}`);
    }
  }
}

/**
 * Runs a command. If the process ends with exit code 0 before the command's promise is settled, the command has not done its work, so the
 * exit code becomes 1. This is not checked for `dev` and `start`.
 */
async function runToEnd(invocation: Invocation): Promise<void> {
  const fail = (code: number) => {
    if (code !== 0 || invocation.command === "dev" || invocation.command === "start") return;
    stderr.write("heddle: ended before its work was done\n");
    process.exitCode = 1;
  };
  process.once("exit", fail);
  await run(invocation);
  process.off("exit", fail);
  // The machine's file may have opened something, such as a timer, that keeps the process alive.
  if (invocation.command === "prove") process.exit();
}

/**
 * Runs the command with which the process was started. A failure is printed to stderr, and ends the process with exit code 1 (`prove`: 2).
 */
export function main(): void {
  enableCompileCache();
  const invocation = parseCommandLine(process.argv.slice(2), process.env);
  const isServer = invocation.command === "dev" || invocation.command === "start";
  runToEnd(invocation).catch((cause: unknown) => {
    const text =
      cause instanceof ServiceError
        ? `${cause.message}${isServer ? addressHint(cause) : ""}`
        : cause instanceof Error
          ? cause.stack
          : String(cause);
    stderr.write(shown(`heddle: ${text}\n`, stderr));
    process.exit(invocation.command === "prove" ? 2 : 1);
  });
}

/** A hint on how to choose another address if the server cannot listen at its address; empty for other errors. */
function addressHint({ code, cause }: ServiceError): string {
  if (code !== "server.address") return "";
  switch ((cause as NodeJS.ErrnoException | undefined)?.code) {
    case "EADDRINUSE":
    case "EACCES":
      return `; ${portHint("--port")}`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
    case "EADDRNOTAVAIL":
      return "; --host names the address to listen on, 0.0.0.0 all of this machine";
    default:
      return `; ${portHint("--port")}, or another address with --host`;
  }
}
