import type { BrowserContext, Page } from "playwright-core";

/** Opens a page, and fails on errors that must not occur. */
export async function opened(
  context: BrowserContext,
  url: string,
): Promise<{ readonly page: Page; readonly wrong: string[] }> {
  const page = await context.newPage();
  const wrong: string[] = [];
  page.on("console", (message) => {
    // A page that is left at once closes its sockets before they are open. Chromium warns of it.
    if (message.text().endsWith("WebSocket is closed before the connection is established.")) return;
    wrong.push(`${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("request", (request) => {
    const { origin, protocol } = new URL(request.url());
    if (origin !== new URL(url).origin && protocol !== "data:") wrong.push(`asks ${request.url()}`);
  });
  await page.goto(url);
  return { page, wrong };
}
