import { Auth } from "@langchain/langgraph-sdk/auth";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import type { AppOptions } from "../../src/app.ts";
import { authenticate, connectAs, tokens } from "../e2e/support/auth.ts";
import { latch } from "../e2e/support/latches.ts";
import { serve } from "../e2e/support/server.ts";
import { browser, isMissing } from "./chromium.ts";
import { heldBack } from "./held-back.ts";
import { opened } from "./opened.ts";

interface Item {
  readonly value: Record<string, unknown>;
  readonly ttl?: number;
}

function storeAt(url: string) {
  const headers = { "content-type": "application/json" };
  return {
    put: (namespace: readonly string[], key: string, value: object, more: object = {}) =>
      fetch(`${url}/store/items`, {
        method: "PUT",
        headers,
        body: JSON.stringify({ namespace, key, value, ...more }),
      }),
    get: async (namespace: string, key: string) =>
      (await (await fetch(`${url}/store/items?namespace=${namespace}&key=${key}`)).json()) as Item | null,
  };
}

const keys = (page: Page) => page.locator(".store tbody .key").allInnerTexts();
const tree = (page: Page) => page.locator(".tree a").allInnerTexts();
const search = async (page: Page, text: string) => {
  await page.getByRole("searchbox").fill(text);
  await page.keyboard.press("Enter");
};

describe.skipIf(isMissing)("the store's page in a real browser", { timeout: 60_000 }, () => {
  test("a page of an address that is beyond the last one says so, and leads to the first one", async () => {
    const { url } = await serve();
    await storeAt(url).put(["docs"], "intro", { text: "on tea" });
    const { page, wrong } = await opened(await browser(), `${url}/#/store?ns=docs&page=1e9`);
    await page.getByText("No more items").waitFor();
    await page.getByRole("link", { name: "First page" }).click();
    await expect.poll(() => keys(page)).toEqual(["intro"]);
    expect(page.url()).toContain("ns=docs");
    for (const name of ["-1", "x", "-Infinity"]) {
      await page.goto(`${url}/#/store?page=${name}`);
      await expect.poll(() => keys(page)).toEqual(["intro"]);
    }
    expect(wrong).toEqual([]);
  });

  test("namespaces are a tree, items are found by words and by members, and the address keeps both", async () => {
    const { url } = await serve();
    const store = storeAt(url);
    await store.put(["users", "alice"], "drink", { text: "likes green tea" });
    await store.put(["users", "bob"], "drink", { text: "likes coffee", rank: 2 });
    await store.put(["docs"], "intro", { text: "on tea" });
    const { page, wrong } = await opened(await browser(), `${url}/#/store`);
    await expect.poll(() => keys(page)).toEqual(["intro", "drink", "drink"]);
    expect(await tree(page)).toEqual(["docs", "users"]);
    await page.getByRole("button", { name: "Namespaces below users" }).click();
    await expect.poll(() => tree(page)).toEqual(["docs", "users", "alice", "bob"]);
    await page.getByRole("complementary").getByRole("link", { name: "users", exact: true }).click();
    await expect.poll(() => keys(page)).toEqual(["drink", "drink"]);
    await search(page, "GREEN tea");
    await expect.poll(() => keys(page)).toEqual(["drink"]);
    await page.reload();
    await expect
      .poll(() => page.locator(".store .value").allInnerTexts())
      .toEqual([expect.stringContaining("green")]);
    await search(page, "rank=2");
    await expect
      .poll(() => page.locator(".store .value").allInnerTexts())
      .toEqual([expect.stringContaining("coffee")]);
    await search(page, "milk");
    await expect.poll(() => page.locator(".empty").innerText()).toContain("No matching items");
    await page.getByRole("link", { name: "Show all items" }).click();
    await expect.poll(() => keys(page)).toEqual(["drink", "drink"]);
    expect(wrong).toEqual([]);
  });

  test("an item is made with an expiry, edited without losing it, and deleted", async () => {
    const { url } = await serve();
    const store = storeAt(url);
    const { page, wrong } = await opened(await browser(), `${url}/#/store`);
    await expect.poll(() => page.locator(".empty").innerText()).toContain("The store is empty");
    await page.getByRole("button", { name: "Create item" }).click();
    await page.getByLabel("Namespace (parts").fill("users.eve");
    await page.getByLabel("Key", { exact: true }).fill("note");
    await page.getByLabel("Value", { exact: true }).fill('{"n": 1}');
    await page.getByLabel("Expires after").fill("90");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await expect.poll(() => keys(page)).toEqual(["note"]);
    expect(page.url()).toContain("ns=users.eve");
    expect(await page.locator(".store tbody").innerText()).toContain("in 1h");

    await page.getByRole("button", { name: "note" }).click();
    expect(await page.getByLabel("Expires after").inputValue()).toBe("90");
    await page.getByLabel("Value", { exact: true }).fill('{"n": 2}');
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await store.get("users.eve", "note")).toMatchObject({ value: { n: 2 }, ttl: 90 });

    await page.getByRole("button", { name: "note" }).click();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.locator("dialog dialog").getByRole("button", { name: "Delete" }).click();
    await expect.poll(() => page.locator(".empty").innerText()).toContain("No items here");
    expect(await store.get("users.eve", "note")).toBeNull();
    expect(wrong).toEqual([]);
  });

  test("an expiry time that is not a number is refused beside its field, and what was typed stays", async () => {
    const { url } = await serve();
    const store = storeAt(url);
    await store.put(["a"], "k", { n: 1 }, { ttl: 90 });
    const { page, wrong } = await opened(await browser(), `${url}/#/store`);
    await page.getByRole("button", { name: "k", exact: true }).click();
    const ttl = page.getByLabel("Expires after");
    await ttl.fill("1,5");
    await ttl.hover();
    await page.mouse.wheel(0, 100);
    expect(await ttl.inputValue()).toBe("1,5");
    const fault = page.getByRole("dialog").getByRole("alert");
    await expect.poll(() => fault.allInnerTexts()).toEqual(["must be a number"]);
    await page.getByRole("button", { name: "Save" }).click();
    await expect.poll(() => page.evaluate("document.activeElement.id")).toBe("item-ttl");
    await ttl.fill("0");
    await expect.poll(() => fault.allInnerTexts()).toEqual(["must be more than 0"]);
    await ttl.fill("1.5");
    await expect.poll(() => fault.count()).toBe(0);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await store.get("a", "k")).toMatchObject({ value: { n: 1 }, ttl: 1.5 });
    await page.getByRole("button", { name: "k", exact: true }).click();
    await ttl.fill("");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await store.get("a", "k")).not.toHaveProperty("ttl");
    expect(wrong).toEqual([]);
  });

  test("an item that is opened right after one has changed it is shown as it is now, and can be changed again", async () => {
    const { url } = await serve();
    const store = storeAt(url);
    await store.put(["a"], "k", { n: 1 }, { ttl: 90 });
    const { page } = await opened(await browser(), `${url}/#/store`);
    const open = page.getByRole("button", { name: "k", exact: true });
    const ttl = page.getByLabel("Expires after");
    await open.click();
    await ttl.fill("5");
    let read: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (read = resolve));
    await page.route("**/store/items/search", async (route) => {
      await held;
      await route.continue();
    });
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await open.click();
    read();
    await expect.poll(() => ttl.inputValue()).toBe("5");
    await ttl.fill("7");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await store.get("a", "k")).toMatchObject({ ttl: 7 });
  });

  test("an item whose key is a space can be opened by its key, which is shown in quotation marks", async () => {
    const { url } = await serve();
    await storeAt(url).put(["docs"], " ", { text: "blank" });
    const { page, wrong } = await opened(await browser(), `${url}/#/store`);
    await page.getByRole("button", { name: '" "', exact: true }).click();
    expect(await page.getByRole("dialog").getByLabel("Key", { exact: true }).inputValue()).toBe(" ");
    expect(wrong).toEqual([]);
  });

  test("an item that somebody else has changed meanwhile is not deleted", async () => {
    const { url } = await serve();
    const store = storeAt(url);
    await store.put(["a"], "k", { by: "first" });
    const { page } = await opened(await browser(), `${url}/#/store`);
    await page.getByRole("button", { name: "k", exact: true }).click();
    await store.put(["a"], "k", { by: "second" });
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Delete" }).click();
    await dialog
      .filter({ hasText: "permanently" })
      .last()
      .getByRole("button", { name: "Delete" })
      .last()
      .click();
    await expect.poll(() => dialog.getByRole("alert").innerText()).toContain("changed by somebody else");
    expect(await store.get("a", "k")).toMatchObject({ value: { by: "second" } });
  });

  test("an edit does not overwrite what somebody else has stored meanwhile", async () => {
    const { url } = await serve();
    const store = storeAt(url);
    await store.put(["a"], "k", { by: "first" });
    const { page } = await opened(await browser(), `${url}/#/store`);
    await page.getByRole("button", { name: "k", exact: true }).click();
    await store.put(["a"], "k", { by: "second" });
    await page.getByLabel("Value", { exact: true }).fill('{"by": "me"}');
    await page.getByRole("button", { name: "Save" }).click();
    await expect
      .poll(() => page.getByRole("dialog").getByRole("alert").innerText())
      .toContain("changed by somebody else");
    expect((await store.get("a", "k"))?.value).toEqual({ by: "second" });
  });

  test("no item of another namespace is shown while those of the chosen one are read", async () => {
    const { url } = await serve();
    const store = storeAt(url);
    await store.put(["a"], "first", {});
    await store.put(["b"], "second", {});
    const context = await browser();
    const { page } = await opened(context, `${url}/#/store?ns=a`);
    await expect.poll(() => keys(page)).toEqual(["first"]);
    const items = await heldBack(context, "**/store/items/search");
    await page.getByRole("complementary").getByRole("link", { name: "b", exact: true }).click();
    await page.locator('[aria-current="true"]', { hasText: "b" }).waitFor();
    expect(await keys(page)).toEqual([]);
    items.pass();
    await expect.poll(() => keys(page)).toEqual(["second"]);
  });

  test("a failure is told although the dialog was closed meanwhile", async () => {
    const { url } = await serve();
    await storeAt(url).put(["a"], "k", {});
    const context = await browser();
    const { page } = await opened(context, `${url}/#/store`);
    await page.getByRole("button", { name: "k", exact: true }).click();
    const answer = latch();
    await page.route("**/store/items", async (route) => {
      await answer.passed;
      await route.fulfill({ status: 500, json: { detail: "no space left" } });
    });
    const sent = page.waitForRequest("**/store/items");
    await page.getByLabel("Value", { exact: true }).fill('{"n": 2}');
    await page.getByRole("button", { name: "Save" }).click();
    await sent;
    await page.getByRole("button", { name: "Close" }).click();
    answer.pass();
    await expect.poll(() => page.locator(".notices").innerText()).toContain("no space left");
  });

  test.each([
    ["prefixes each namespace", false, "Item not found."],
    ["prefixes those that lack the prefix", true, "Item deleted."],
  ])("where a rule %s, a deletion tells whether the item is gone", async (_, isOnce, told) => {
    const auth = new Auth().authenticate(authenticate).on("store", ({ value, user }) => {
      const namespace = value.namespace ?? [];
      if (!isOnce || namespace[0] !== user.identity) value.namespace = [user.identity, ...namespace];
    });
    const { url } = await serve({ auth: auth as unknown as NonNullable<AppOptions["auth"]> });
    const { store } = connectAs(url, "alice");
    await store.putItem(["notes"], "k", { n: 1 });
    const context = await browser();
    await context.addInitScript(`sessionStorage.setItem("heddle.key", "${tokens.alice}")`);
    const { page } = await opened(context, `${url}/#/store`);
    await page.getByRole("button", { name: "k", exact: true }).click();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.locator("dialog dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText(told).waitFor();
    expect((await store.searchItems(["notes"])).items).toHaveLength(isOnce ? 0 : 1);
  });
  test("a number that would lose digits is refused for that reason, beside its field and at *Create*", async () => {
    const { url } = await serve();
    const { page, wrong } = await opened(await browser(), `${url}/#/store`);
    await page.getByRole("button", { name: "Create item" }).first().click();
    await page.getByLabel("Namespace (parts").fill("users");
    await page.getByLabel("Key", { exact: true }).fill("note");
    await page.getByLabel("Value", { exact: true }).fill('{"id": 12345678901234567891}');
    const faults = page.getByRole("dialog").getByRole("alert");
    await expect.poll(() => faults.count()).toBe(1);
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await expect.poll(() => faults.count()).toBe(2);
    for (const fault of await faults.allInnerTexts())
      expect(fault).toContain("12345678901234567891 cannot be represented exactly");
    expect(wrong).toEqual([]);
  });
});
