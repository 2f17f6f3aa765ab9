import type { BrowserContext } from "playwright-core";
import { latch, type Latch } from "../e2e/support/latches.ts";

/** Delays the page's requests that match `url`, as a slow network does, until the latch opens. */
export async function heldBack(context: BrowserContext, url: string | RegExp): Promise<Latch> {
  const gate = latch();
  await context.route(url, async (route) => {
    await gate.passed;
    await route.continue();
  });
  return gate;
}
