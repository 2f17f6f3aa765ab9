import { describe, expect, test } from "vitest";
import { serve } from "../e2e/support/server.ts";
import { get, postJson } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { opened } from "./opened.ts";

describe.skipIf(isMissing)("a thread's title and metadata in a real browser", { timeout: 60_000 }, () => {
  test("they are shown and edited; members that were left alone stay as they are", async () => {
    const { url } = await serve();
    const metadata = { customer: "42", note: { a: 1 } };
    const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`, { metadata });
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread_id}`);
    await expect.poll(() => page.innerText(".head .metadata")).toBe('customer=42 · note={"a":1}');
    expect(await page.innerText(".head h2")).toContain("Untitled thread");
    await page.getByRole("button", { name: "Details", exact: true }).click();
    await page.getByLabel("Title", { exact: true }).fill("Letter to the bank");
    await page.getByLabel("Metadata", { exact: true }).fill("[]");
    await page.getByRole("button", { name: "Save" }).click();
    await expect.poll(() => page.innerText("dialog [role=alert]")).toContain("must be a JSON object");
    await page.getByLabel("Metadata", { exact: true }).fill('{"customer": "42", "note": 2, "urgent": true}');
    await page.getByRole("button", { name: "Save" }).click();
    await expect.poll(() => page.innerText(".head h2")).toContain("Letter to the bank");
    expect(await page.innerText(".head .metadata")).toBe("customer=42 · note=2 · urgent=true");
    await expect.poll(() => page.innerText("a.thread .name")).toBe("Letter to the bank");
    expect(await (await get(`${url}/threads/${thread_id}`)).json()).toMatchObject({
      metadata: { customer: "42", note: 2, urgent: true, title: "Letter to the bank" },
    });
    expect(wrong).toEqual([]);
  });

  test("a member that is deleted is refused with the reason, because the API cannot delete it", async () => {
    const { url } = await serve();
    const metadata = { customer: "42", note: 1, title: { is: "no text" } };
    const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`, { metadata });
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread_id}`);
    await page.getByRole("button", { name: "Details", exact: true }).click();
    const field = page.getByLabel("Metadata", { exact: true });
    const save = page.getByRole("button", { name: "Save" });
    expect(await save.isDisabled()).toBe(true);
    await field.fill('{"note": 2}');
    await save.click();
    await expect
      .poll(() => page.innerText("dialog [role=alert]"))
      .toBe(
        "“customer” cannot be deleted: the API only adds and replaces metadata fields. Set it to null instead.",
      );
    const stored = async () => (await get(`${url}/threads/${thread_id}`)).json();
    expect(await stored()).toMatchObject({ metadata });
    await field.fill('{"note": 2, "customer": null}');
    // A member that another client adds meanwhile was not deleted here.
    await fetch(`${url}/threads/${thread_id}`, {
      method: "PATCH",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ metadata: { later: true } }),
    });
    await expect.poll(() => page.innerText(".head .metadata")).toContain("later=true");
    await save.click();
    await expect.poll(() => page.innerText(".head .metadata")).toContain("customer=null");
    expect(await stored()).toMatchObject({ metadata: { ...metadata, customer: null, note: 2, later: true } });
    expect(wrong).toEqual([]);
  });

  test("a title and metadata that somebody else has changed meanwhile are not overwritten", async () => {
    const { url } = await serve();
    const metadata = { title: "first", customer: "42", note: 1 };
    const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`, { metadata });
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread_id}`);
    await page.getByRole("button", { name: "Details", exact: true }).click();
    await page.getByLabel("Title", { exact: true }).fill("mine");
    await page
      .getByLabel("Metadata", { exact: true })
      .fill('{"customer": "43", "note": 2, "constructor": "new"}');
    await fetch(`${url}/threads/${thread_id}`, {
      method: "PATCH",
      headers: { "content-type": "application/json" },
      // `note` is changed to the same value as in the form.
      body: JSON.stringify({ metadata: { title: "theirs", customer: "44", note: 2 } }),
    });
    await page.getByRole("button", { name: "Save" }).click();
    await expect
      .poll(() => page.innerText("dialog [role=alert]"))
      .toBe(
        "Somebody else has changed “customer”, “title” while you were editing. Copy your changes, and open the form again.",
      );
    expect(await page.getByLabel("Title", { exact: true }).inputValue()).toBe("mine");
    expect(await (await get(`${url}/threads/${thread_id}`)).json()).toMatchObject({
      metadata: { title: "theirs", customer: "44", note: 2 },
    });
    expect(wrong).toEqual([]);
  });

  test("the button that opened the dialog has the focus again when they are saved", async () => {
    const { url } = await serve();
    const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`);
    const { page, wrong } = await opened(await browser(), `${url}/#/threads/${thread_id}`);
    await page.getByRole("button", { name: "Details", exact: true }).click();
    await page.getByLabel("Title", { exact: true }).fill("Letter");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await expect.poll(() => page.evaluate("document.activeElement.textContent")).toBe("Details");
    expect(wrong).toEqual([]);
  });
});
