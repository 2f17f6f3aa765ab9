#!/usr/bin/env node
import { enableCompileCache } from "./graph-loader/compile-cache.ts";
import { ServiceError } from "./model/errors.ts";
import { HELP, parseCommandLine, type Invocation } from "./cli/settings.ts";
import { VERSION } from "./platform/version.ts";

enableCompileCache();

const { stdout, stderr } = process;
const say = (line: string) => void stdout.write(`${line}\n`);

// What a command needs is loaded with it: the others would have to wait for all of it.
async function run(asked: Invocation): Promise<void> {
  switch (asked.command) {
    case "help":
      return void stdout.write(HELP);
    case "version":
      return say(VERSION);
    case "refused":
      stderr.write(`heddle: ${asked.why}\nTry: heddle --help\n`);
      process.exitCode = 2;
      return;
    case "dev":
    case "start":
      return (await import("./cli/serve.ts")).serve(asked);
    case "check": {
      const { check } = await import("./cli/maintenance.ts");
      if ((await check(asked.data, say)) > 0) process.exitCode = 1;
      return;
    }
    case "repair": {
      const { accept, repair } = await import("./cli/maintenance.ts");
      if (asked.accept) return accept(asked.data, say);
      await repair(asked.data);
      return say(`${asked.data} was rebuilt; "heddle check" tells what could not be brought back`);
    }
    case "inspect": {
      const { inspect } = await import("./cli/inspect.ts");
      await inspect(asked, process.env, say);
      return;
    }
    case "backup": {
      const { backup } = await import("./cli/maintenance.ts");
      await backup(asked.data, asked.target);
      return say(`${asked.data} was copied to ${asked.target}`);
    }
  }
}

/** Runs a command. One whose work is not done when nothing keeps the process alive any more has failed, whatever it printed. */
async function runToEnd(asked: Invocation): Promise<void> {
  const fail = (code: number) => {
    if (code !== 0 || asked.command === "dev" || asked.command === "start") return;
    stderr.write("heddle: ended before its work was done\n");
    process.exitCode = 1;
  };
  process.once("exit", fail);
  await run(asked);
  process.off("exit", fail);
}

runToEnd(parseCommandLine(process.argv.slice(2), process.env)).catch((cause: unknown) => {
  const isPort = cause instanceof ServiceError && cause.code === "server.address";
  const hint = isPort ? "; --port names another port, 0 any free one, and --host another address" : "";
  const text =
    cause instanceof ServiceError
      ? `${cause.message}${hint}`
      : cause instanceof Error
        ? cause.stack
        : String(cause);
  stderr.write(`heddle: ${text}\n`);
  process.exit(1);
});
