import { spawn } from "node:child_process";
import { join } from "node:path";
import { SERVED } from "./build.ts";
import { firstAnswer, freePort } from "./ports.ts";

/**
 * Milliseconds from the start of Heddle's command line to its first `/ok`.
 * @throws Error with its output if it ends instead
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
      () => (child.exitCode === null ? undefined : `heddle start ended with ${child.exitCode}: ${said}`),
      20,
    );
    return performance.now() - began;
  } finally {
    child.kill("SIGKILL");
  }
}
