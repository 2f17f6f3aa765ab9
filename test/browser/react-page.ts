import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { buildSync } from "esbuild";
import type { Page } from "playwright-core";
import { onTestFinished } from "vitest";

const HTML = `<!doctype html><meta charset=utf-8><title>a page</title><body><script src=/page.js></script>`;

/** A page with official hooks, bundled as a project would do it. */
export function bundlePage(file: string): string {
  const { outputFiles } = buildSync({
    entryPoints: [join(import.meta.dirname, "react", file)],
    define: { "process.env.NODE_ENV": '"production"' },
    bundle: true,
    write: false,
    format: "iife",
    platform: "browser",
    logLevel: "error",
  });
  return outputFiles[0]?.text ?? "";
}

/** Serves a page from a port of its own: to the server under test it is a foreign one. */
export async function servePage(script: string): Promise<string> {
  const server = createServer(({ url }, response) => {
    const [type, body] = url === "/page.js" ? ["text/javascript", script] : ["text/html", HTML];
    response.writeHead(200, { "content-type": `${type}; charset=utf-8` }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** What goes wrong in a page from now on: exceptions, and errors on its console. */
export function errorsOf(page: Page): readonly string[] {
  const wrong: string[] = [];
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !message.text().includes("favicon")) wrong.push(message.text());
  });
  return wrong;
}
