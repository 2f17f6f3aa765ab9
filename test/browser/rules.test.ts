import { describe, expect, test } from "vitest";
import { serve } from "../e2e/support/server.ts";
import { authenticate, connectAs, headersOf, owned, tokens } from "../e2e/support/auth.ts";
import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";
import { browser, isMissing } from "./chromium.ts";
import type { AppOptions } from "../../src/app.ts";

/** The dashboard of Alice, and the requests that were refused there or found nothing. */
async function pageOfAlice(auth: Auth) {
  const { url } = await serve({ auth: auth as unknown as NonNullable<AppOptions["auth"]> });
  const context = await browser();
  await context.addInitScript(`sessionStorage.setItem("heddle.key", "${tokens.alice}")`);
  const page = await context.newPage();
  const refused: string[] = [];
  page.on("response", (response) => {
    if (response.status() >= 400) refused.push(new URL(response.url()).pathname);
  });
  return { url, page, refused, alice: connectAs(url, "alice") };
}

describe.skipIf(isMissing)("the dashboard of a user, in a real browser", { timeout: 60_000 }, () => {
  test("says that the rules show no assistant, where the server has graphs", async () => {
    const { url, page } = await pageOfAlice(owned());
    for (const path of ["#/graphs", "#/new"]) {
      await page.goto(`${url}/${path}`);
      await expect
        .poll(() => page.locator(".empty").last().innerText())
        .toContain("You have no access to any assistant");
    }
    expect(await page.getByRole("button", { name: "Start", exact: true }).count()).toBe(0);
  });

  test("says who one is; a sign-out forgets the token, and all that it showed", async () => {
    const { url } = await serve({ auth: owned() as unknown as NonNullable<AppOptions["auth"]> });
    const { thread_id } = await connectAs(url, "alice").threads.create();
    const page = await (await browser()).newPage();
    await page.goto(`${url}/`);
    await page.fill("#secret", tokens.alice);
    await page.keyboard.press("Enter");
    await page.locator(`a[href*="${thread_id}"]`).waitFor();
    await expect.poll(() => page.locator(".top .identity").allInnerTexts()).toEqual(["ALICE"]);
    expect(await page.getAttribute(".top .identity", "title")).toBe("alice");
    const settings = (await (
      await fetch(`${url}/dashboard/settings`, { headers: headersOf("alice") })
    ).json()) as unknown;
    // Nothing else that `authenticate` returned: it may be secret.
    expect(settings).toMatchObject({ user: { identity: "alice", display_name: "ALICE" } });
    expect(JSON.stringify(settings)).not.toContain("of alice");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.locator("#secret").waitFor();
    expect(await page.locator(".top .identity").count()).toBe(0);
    expect(await page.locator(`a[href*="${thread_id}"]`).count()).toBe(0);
    await page.reload();
    await page.fill("#secret", tokens.bob);
    await page.keyboard.press("Enter");
    await expect.poll(() => page.locator(".top .identity").allInnerTexts()).toEqual(["BOB"]);
    expect(await page.locator(`a[href*="${thread_id}"]`).count()).toBe(0);
  });

  test("a link that is opened in a new tab asks for no token again; a tab from which one has signed out does", async () => {
    const { url } = await serve({ auth: owned() as unknown as NonNullable<AppOptions["auth"]> });
    const { thread_id } = await connectAs(url, "alice").threads.create();
    const context = await browser();
    const page = await context.newPage();
    await page.goto(`${url}/`);
    await page.fill("#secret", tokens.alice);
    await page.keyboard.press("Enter");
    const link = page.locator(`a[href*="${thread_id}"]`).first();
    const clicks = [
      () => link.click({ button: "middle" }),
      () => link.click({ modifiers: ["ControlOrMeta"] }),
    ];
    for (const click of clicks) {
      const [tab] = await Promise.all([context.waitForEvent("page"), click()]);
      await expect.poll(() => tab.locator(".top .identity").allInnerTexts()).toEqual(["ALICE"]);
      await tab.locator(".head code", { hasText: thread_id }).waitFor();
      expect(await tab.locator("#secret").count()).toBe(0);
      // The key is kept for a reload, and given to further tabs.
      await tab.reload();
      await expect.poll(() => tab.locator(".top .identity").allInnerTexts()).toEqual(["ALICE"]);
      await tab.getByRole("button", { name: "Sign out" }).click();
      await tab.locator("#secret").waitFor();
      await tab.reload();
      await tab.locator("#secret").waitFor();
      await tab.close();
    }
    const inspector = await context.newPage();
    const answered = inspector.waitForResponse(
      (response) => response.request().headers()["x-api-key"] === tokens.alice && response.ok(),
    );
    await inspector.goto(`${url}/inspector`);
    await answered;
    expect(await inspector.locator("#key").isVisible()).toBe(false);
    await inspector.close();
    // The first tab is signed in as before. In another browser, there is none to ask.
    await page.reload();
    await link.waitFor();
    const other = await (await browser()).newPage();
    await other.goto(`${url}/`);
    await other.locator("#secret").waitFor();
  });

  test("says which key one has where there are no users, and nothing where there are no keys", async () => {
    const { url } = await serve({ keys: ["open-sesame-42"] });
    const page = await (await browser()).newPage();
    await page.goto(`${url}/`);
    await page.fill("#secret", "open-sesame-42");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.locator(".top .identity").allInnerTexts()).toEqual(["API key ope…"]);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.locator("#secret").waitFor();
    const open = await serve();
    const answered = page.waitForResponse("**/dashboard/settings");
    await page.goto(`${open.url}/`);
    await answered;
    await page.getByRole("heading", { level: 1 }).first().waitFor();
    expect(await page.getByRole("button", { name: "Sign out" }).count()).toBe(0);
  });

  test("says so where a graph's drawing is hidden, and shows a cron's graph by its name", async () => {
    const { url, page, alice } = await pageOfAlice(owned());
    const { assistant_id } = await alice.assistants.create({ graphId: "approval", name: "Own" });
    await page.goto(`${url}/#/graphs/${assistant_id}`);
    await expect.poll(() => page.innerText(".graphs .note")).toContain("hidden by the access rules");
    expect(await page.getByRole("button", { name: "Try again" }).count()).toBe(0);

    const { thread_id } = await alice.threads.create();
    const { cron_id } = await alice.crons.createForThread(thread_id, "approval", { schedule: "0 9 * * *" });
    const metadata = { cron_id };
    await alice.runs.wait(thread_id, "approval", { input: { topic: "tea" }, metadata });
    await page.goto(`${url}/#/crons`);
    await expect.poll(() => page.innerText(".crons > ul > li p")).toContain("approval · thread …");
  });

  test("says on the page of the system that its numbers are for operators, and how to see them", async () => {
    const { url, page } = await pageOfAlice(owned());
    await page.goto(`${url}/#/system`);
    await expect.poll(() => page.innerText(".system .note")).toContain("require an API key");
    expect(await page.getByRole("button", { name: "Try again" }).count()).toBe(0);
    expect(await page.locator(".system .failure").count()).toBe(0);
  });

  test("asks once for the schemas of an assistant that it may not read", async () => {
    const { url, page, refused, alice } = await pageOfAlice(
      new Auth().authenticate(authenticate).on("assistants", () => false) as unknown as Auth,
    );
    const run = async () => alice.runs.wait((await alice.threads.create()).thread_id, "agent", { input: {} });
    await run();
    await page.goto(`${url}/`);
    await page.locator("a.thread").first().waitFor();
    await expect.poll(() => refused.filter((path) => path.endsWith("/schemas"))).toHaveLength(1);
    await run();
    await expect.poll(() => page.locator("a.thread").count()).toBe(2);
    await page.waitForLoadState("networkidle");
    expect(refused.filter((path) => path.endsWith("/schemas"))).toHaveLength(1);
  });

  test("asks for another token in place when one's own has expired, and keeps what was typed", async () => {
    const users = new Map([["first", "alice"]]);
    const auth = new Auth().authenticate((request: Request) => {
      const token = request.headers.get("authorization")?.replace("Bearer ", "") ?? "";
      const identity = users.get(token);
      if (identity === undefined) throw new HTTPException(401, { message: "Who are you?" });
      return { identity, display_name: identity, permissions: [] };
    });
    const { url } = await serve({ auth: auth as unknown as NonNullable<AppOptions["auth"]> });
    const page = await (await browser()).newPage();
    const message = page.getByRole("textbox", { name: "Message", exact: true });
    await page.goto(`${url}/#/new?graph=agent`);
    await page.fill("#secret", "first");
    await page.keyboard.press("Enter");
    await message.fill("hello");
    users.delete("first");
    users.set("second", "alice");
    // The list of threads, which is read every second, is refused.
    await page.getByRole("dialog", { name: "API key or user token required" }).waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await page.fill("#secret", "second");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
    expect(await message.inputValue()).toBe("hello");
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.locator(".bubble.human").getByText("hello").waitFor();
    await page.waitForSelector(".live.open");

    // What one user has typed is not shown to another.
    await message.fill("a secret");
    users.delete("second");
    users.set("third", "bob");
    await page.getByRole("dialog", { name: "API key or user token required" }).waitFor();
    await page.fill("#secret", "third");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.locator(".top .identity").allInnerTexts()).toEqual(["bob"]);
    await message.waitFor();
    expect(await message.inputValue()).toBe("");
  });

  test("shows nothing of one tenant to another, whose key is entered when the first one's has expired", async () => {
    const first = await serve({ keys: ["one:key-of-one", "two:key-of-two"] });
    const page = await (await browser()).newPage();
    const message = page.getByRole("textbox", { name: "Message", exact: true });
    await page.goto(`${first.url}/#/new?graph=agent`);
    await page.fill("#secret", "key-of-one");
    await page.keyboard.press("Enter");
    await page.locator(".top .identity").waitFor();
    await message.fill("a secret");
    await first.close(0);
    await serve({
      keys: ["one:another-key-of-one", "two:key-of-two"],
      port: Number(new URL(first.url).port),
    });
    await page.getByRole("dialog", { name: "API key or user token required" }).waitFor();
    await page.fill("#secret", "key-of-two");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
    await expect.poll(() => message.inputValue()).toBe("");
  });

  test("refuses a token that no header can carry, and stores none before the server has accepted it", async () => {
    const { url } = await serve({ auth: owned() as unknown as NonNullable<AppOptions["auth"]> });
    const page = await (await browser()).newPage();
    await page.goto(`${url}/`);
    const stored = () => page.evaluate('sessionStorage.getItem("heddle.key")');
    for (const [token, told] of [
      ["ключ", "may contain only ASCII"],
      ["unknown", "is not valid"],
    ] as const) {
      await page.fill("#secret", token);
      await page.keyboard.press("Enter");
      await expect
        .poll(() => page.locator(".lock .bad").allInnerTexts())
        .toEqual([expect.stringContaining(told)]);
      expect(await stored()).toBeNull();
    }
    await page.fill("#secret", tokens.alice);
    await page.keyboard.press("Enter");
    await page.locator(".top .identity").waitFor();
    expect(await stored()).toBe(tokens.alice);
  });
});
