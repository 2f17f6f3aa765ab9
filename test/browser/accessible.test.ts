import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { DASHBOARD_PAGES } from "../../src/dashboard/app/dashboard-pages.ts";
import order from "../../src/demo/order.ts";
import { serve } from "../e2e/support/server.ts";
import { newThread, postJson } from "../e2e/support/wire.ts";
import { seriousFaults } from "./axe.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

const send = (address: string, method: string, body: unknown) =>
  fetch(address, { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });

/** Opens the form of a state, with a message that calls a tool. */
async function editState(page: Page, hash: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
  await page.getByRole("button", { name: "Edit state" }).click();
  await page.getByRole("button", { name: /^▸ ai .*→/ }).click();
  await page.getByRole("group", { name: "Tool call 1" }).waitFor();
}

describe.skipIf(isMissing)("the dashboard, for those who see it otherwise", { timeout: 120_000 }, () => {
  test("axe-core finds no serious fault, light and dark; on a phone nothing sticks out", async () => {
    const { url } = await serve({ graphs: { order } });
    const thread = await newThread(url);
    const asks = await newThread(url);
    const awaits = await newThread(url);
    const input = { messages: [{ role: "user", content: "count these words" }] };
    await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "agent", input });
    await postJson(`${url}/threads/${asks}/runs/wait`, { assistant_id: "approval", input: {} });
    await postJson(`${url}/threads/${awaits}/runs/wait`, { assistant_id: "order", input: {} });
    const [run] = (await (await fetch(`${url}/threads/${thread}/runs`)).json()) as { run_id: string }[];
    const [waits] = (await (await fetch(`${url}/threads/${asks}/runs`)).json()) as { run_id: string }[];
    const { assistant_id } = await postJson<{ assistant_id: string }>(`${url}/assistants`, {
      graph_id: "agent",
      context: { a: 1 },
    });
    await send(`${url}/assistants/${assistant_id}`, "PATCH", { context: { a: 2 } });
    await postJson(`${url}/runs/crons`, { assistant_id, schedule: "0 9 * * MON", input });
    await send(`${url}/store/items`, "PUT", { namespace: ["a", "b"], key: "k", value: { a: 1 }, ttl: 60 });
    const timeline = `#/threads/${thread}/runs/${run?.run_id}?step=1`;
    const places: readonly (readonly [hash: string, there: string])[] = [
      ["#/new", ".run-form"],
      [`#/threads/${thread}`, ".bubble"],
      [`#/threads/${asks}`, ".question"],
      [`#/threads/${awaits}`, ".question"],
      [`#/threads/${thread}?tab=runs`, ".runs li"],
      [`#/threads/${thread}?tab=history`, ".diff"],
      [`#/threads/${thread}?tab=graph`, ".graphs svg"],
      [timeline, ".detail .diff"],
      [`#/threads/${asks}/runs/${waits?.run_id}`, ".note"],
      ["#/inbox", ".questions"],
      ["#/runs", ".all-runs tbody tr"],
      ["#/graphs", ".graphs svg"],
      ["#/assistants", ".empty"],
      [`#/assistants/${assistant_id}?with=1`, ".diff"],
      ["#/crons", ".crons li"],
      ["#/store", ".store tbody tr"],
      ["#/system", ".tile"],
    ];
    const isVisited = ({ name }: { readonly name: string }) =>
      places.some(([hash]) => hash.startsWith(`#/${name}`));
    expect(DASHBOARD_PAGES.filter((page) => !isVisited(page))).toEqual([]);
    const { page, wrong } = await opened(await browser(), `${url}/`);
    const found: string[] = [];
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      const colours = colorScheme === "dark";
      for (const [hash, there] of places) {
        await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
        await page.waitForSelector(there);
        found.push(...(await seriousFaults(page, `${colorScheme} ${hash}`, { colours })));
      }
      await editState(page, `#/threads/${thread}?tab=history`);
      found.push(...(await seriousFaults(page, `${colorScheme} edited state`, { colours })));
      await page.keyboard.press("Escape");
    }
    expect(found).toEqual([]);
    await page.setViewportSize({ width: 360, height: 740 });
    for (const [hash, there] of places) {
      await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
      await page.waitForSelector(there);
      const width = await page.evaluate<number>("document.documentElement.scrollWidth");
      expect(width, hash).toBeLessThanOrEqual(360);
      // The lists of cards scroll downwards alone.
      const outer = await page.$$eval(".card", (all) =>
        Math.max(0, ...all.map((card) => card.getBoundingClientRect().right)),
      );
      expect(outer, hash).toBeLessThanOrEqual(360);
    }
    await editState(page, `#/threads/${thread}?tab=history`);
    expect(await page.evaluate("document.querySelector('dialog').scrollWidth")).toBeLessThanOrEqual(360);
    expect(wrong).toEqual([]);
  });
});
