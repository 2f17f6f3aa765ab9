import { existsSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from "playwright-core";
import { onTestFinished } from "vitest";

/**
 * Debian's Chromium. The headless shell takes two thirds of the time; if only the whole browser is installed, it shows
 * the same pages.
 */
const EXECUTABLES = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];
export const EXECUTABLE: string = EXECUTABLES.find((path) => existsSync(path)) ?? "";

/** Without Chromium the tests are skipped; in CI they fail. */
export const isMissing = EXECUTABLE === "" && process.env["CI"] !== "true";

/** A foreign host name that resolves to this machine. */
export const EVIL = "evil.test";

let running: Promise<Browser> | undefined;

/**
 * One browser for all test files of a process, because a start takes longer than most of them. It ends with the
 * process.
 */
function started(): Promise<Browser> {
  if (EXECUTABLE === "") throw new Error(`there is none of ${EXECUTABLES.join(", ")}`);
  running ??= chromium.launch({
    executablePath: EXECUTABLE,
    headless: true,
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      // New browsers block requests to this machine themselves; the tests check that the server does. Spare
      // processes for further pages are not needed either.
      "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests,SpareRendererForSitePerProcess",
      `--host-resolver-rules=MAP ${EVIL} 127.0.0.1`,
    ],
  });
  return running;
}

/** A new, empty browser context for one test. */
export async function browser(options: BrowserContextOptions = {}): Promise<BrowserContext> {
  // Animations would have the page drawn again and again.
  const context = await (await started()).newContext({ reducedMotion: "reduce", ...options });
  onTestFinished(() => context.close());
  return context;
}

const HTML = "<!doctype html><meta charset=utf-8><title>a page</title><p>a page";

/** A page of a foreign server on a port of its own. */
export async function pageOf(context: BrowserContext, host: string): Promise<Page> {
  const server = createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/html" }).end(HTML);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => server.close().closeAllConnections());
  const page = await context.newPage();
  await page.goto(`http://${host}:${(server.address() as AddressInfo).port}/`);
  return page;
}

/**
 * A page that was loaded under a name before the name was changed to resolve to `port` of this machine (DNS rebinding).
 */
export async function reboundPage(context: BrowserContext, port: number): Promise<Page> {
  const page = await context.newPage();
  const url = `http://${EVIL}:${port}/page`;
  await page.route(url, (route) => route.fulfill({ contentType: "text/html", body: HTML }));
  await page.goto(url);
  await page.unroute(url);
  return page;
}
