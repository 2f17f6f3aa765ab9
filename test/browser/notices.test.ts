import { describe, expect, test } from "vitest";
import { gated } from "../e2e/support/latches.ts";
import { serve } from "../e2e/support/server.ts";
import { newThread, postJson } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";

describe.skipIf(isMissing)("errors in a real browser", { timeout: 60_000 }, () => {
  test("go when their cause is over: a run in progress, a server that cannot be reached", async () => {
    const { held, waits, open } = gated();
    const { url } = await serve({ graphs: { held } });
    const thread = await newThread(url);
    await postJson(`${url}/threads/${thread}/runs`, { assistant_id: "held", input: { name: "first" } });
    await waits("first");
    const page = await (await browser()).newPage();
    await page.goto(`${url}/#/threads/${thread}`);
    const notice = page.locator(".notice.bad");
    const form = page.getByRole("region", { name: "Start a run" });
    await form.getByLabel("If a run is active").selectOption("reject");
    await form.getByRole("button", { name: "Start run" }).click();
    await expect.poll(() => notice.innerText()).toContain("change “If a run is active”");
    open("first");
    await notice.waitFor({ state: "detached" });

    open("nobody");
    await page.route("**/threads/*/runs", (route) => route.abort());
    await form.getByRole("button", { name: "Run", exact: true }).click();
    await expect.poll(() => notice.innerText()).toContain("The server cannot be reached.");
    // The list of threads is read again.
    await page.getByRole("searchbox").first().fill("x=y");
    await notice.waitFor({ state: "detached", timeout: 10_000 });
  });
});
