import { spawn } from "node:child_process";
import { join } from "node:path";
import { SERVED } from "./build.ts";
import { firstAnswer, freePort } from "./ports.ts";

/**
 * Starts Heddle's command line, and returns the milliseconds from the start of the process to the first `/ok` with
 * status 200. The process is then killed.
 * @throws Error with its standard error output if it exits before, or Error after 20 seconds
 */
export async function startHeddle(built: string, data: string, node = process.execPath): Promise<number> {
  const port = await freePort();
  const config = join(built, "cold.json");
  const options = ["--config", config, "--data", data, "--port", String(port)];
  const began = performance.now();
  const child = spawn(node, [join(built, SERVED, "cli.js"), "start", ...options], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  try {
    await firstAnswer(
      port,
      "/ok",
      () =>
        child.exitCode === null && child.signalCode === null
          ? undefined
          : `heddle start ended with ${child.exitCode ?? child.signalCode}: ${said}`,
      20,
    );
    return performance.now() - began;
  } finally {
    child.kill("SIGKILL");
  }
}
