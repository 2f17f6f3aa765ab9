import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { JsonSchema } from "../../src/dashboard/api/records.ts";
import { findInexactNumber } from "../../src/dashboard/components/number-precision-check.ts";
import { validateFormValue } from "../../src/dashboard/components/form-schema.ts";
import { changedFieldsOf, editableFieldsSchema } from "../../src/dashboard/threads/editable-fields.ts";
import { graph, list, value } from "../../src/index.ts";
import { serve } from "../e2e/support/server.ts";
import { get, newThread, post, postJson } from "../e2e/support/wire.ts";
import { browser, isMissing } from "./chromium.ts";
import { heldBack } from "./held-back.ts";
import { opened } from "./opened.ts";

const schema: JsonSchema = {
  type: "object",
  $defs: {
    place: {
      type: "object",
      properties: { street: { type: "string" }, number: { type: "integer", minimum: 1 } },
      required: ["street", "number"],
    },
    tree: { type: "object", properties: { next: { $ref: "#/$defs/tree" } }, required: ["next"] },
  },
  properties: {
    amount: { type: "number" },
    limit: { type: ["number", "null"] },
    kind: { enum: ["letter", "parcel"] },
    count: { default: 0 },
    either: { anyOf: [{ type: "string" }, { type: "integer" }] },
    sizes: { type: "array", items: { type: "integer" } },
    place: { anyOf: [{ $ref: "#/$defs/place" }, { type: "null" }] },
  },
  required: ["amount"],
};

/** A graph that is given a number, and nothing else. */
const strict = graph({
  state: { size: z.number() },
  nodes: { keep: async () => ({}) },
  edges: { start: "keep" },
});

const told = (value: unknown) => validateFormValue(schema, value).map(({ at, text }) => `${at} ${text}`);

describe("numbers in a JSON text", () => {
  test.each([
    "9007199254740992",
    "-9007199254740994",
    "1000000000000000000000",
    "0.1234567890123456789",
    "1e300",
    String.raw`{"9007199254740993": "9007199254740993 \"9007199254740993\\"}`,
  ])("%s has none that would be changed", (text) => {
    expect(findInexactNumber(text)).toBe(null);
  });

  test.each([
    [
      '{"a": [1, 9007199254740993]}',
      "9007199254740993 cannot be represented exactly: it would be sent as 9007199254740992",
    ],
    [
      "-12345678901234567890",
      "-12345678901234567890 cannot be represented exactly: it would be sent as -12345678901234567168",
    ],
    ['["\\\\", 1e400]', "1e400 is too large for a number"],
  ])("%s has one that would be changed", (text, fault) => {
    expect(findInexactNumber(text)).toBe(fault);
  });
});

describe("what is entered into a form", () => {
  test.each([
    [{}, ["amount is required"]],
    [{ amount: 1.5, limit: null, kind: "parcel", count: 2, either: "x", sizes: [1] }, []],
    [{ amount: "3" }, ["amount must be a number"]],
    [{ amount: 1, limit: "none" }, ["limit must be either number or null"]],
    [{ amount: 1, kind: "bag" }, ["kind must be one of letter, parcel"]],
    // Its schema has only a default, which is a number.
    [{ amount: 1, count: "many" }, ["count must be a number"]],
    [{ amount: 1, either: true }, ["either must be a string"]],
    [{ amount: 1, sizes: "abc" }, ["sizes must be an array"]],
    [{ amount: 1, sizes: [1, "x"] }, ["sizes must be an integer"]],
    [{ amount: 1, place: null }, []],
    [{ amount: 1, place: { street: "Elm", number: 0.5 } }, ["place.number must be an integer"]],
    [{ amount: 1, place: { street: "Elm" } }, ["place.number is required"]],
    [JSON.parse('{"amount": 1, "__proto__": {"amount": "x"}}'), []],
  ] as const)("%j: %j", (entered, faults) => {
    expect(told(entered)).toEqual(faults);
  });

  test("is not checked by a schema that is none; one that holds itself has an end", () => {
    expect(
      validateFormValue({ properties: { a: { type: "string", pattern: "(" } as JsonSchema } }, { a: "x" }),
    ).toEqual([]);
    expect(validateFormValue({ properties: { a: { $ref: "#/nowhere" } } }, { a: 1 })).toHaveLength(1);
    const tree = { ...schema, properties: { tree: { $ref: "#/$defs/tree" } }, required: ["tree"] };
    expect(validateFormValue(tree, {}).map(({ at }) => at)).toEqual(["tree.next.next.next.next"]);
  });
});

describe("a state that is edited", () => {
  const values = { amount: 3, note: "hi", sizes: [1], limit: null, place: { street: "Elm", number: 1 } };
  const shown = editableFieldsSchema(schema, values);

  test("has fields for what its schema tells of, and for what is simple; no lists, and nothing must be given", () => {
    expect(Object.keys(shown.properties ?? {})).toEqual([
      "amount",
      "limit",
      "kind",
      "count",
      "place",
      "note",
    ]);
    expect(validateFormValue(shown, {})).toEqual([]);
    expect(editableFieldsSchema(null, { a: 1, b: [2] }).properties).toEqual({ a: { type: "number" } });
  });

  test.each([
    [{}, {}],
    [{ amount: 4 }, { amount: 4 }],
    [{ note: undefined }, { note: "" }],
    [{ amount: undefined }, { amount: null }],
    [{ place: { street: "Elm", number: 1 } }, {}],
    [{ place: { street: "Oak", number: 1 } }, { place: { street: "Oak", number: 1 } }],
  ])("with %j changes %j", (part, changes) => {
    expect(changedFieldsOf(shown, values, { ...values, ...part })).toEqual(changes);
  });

  test("cannot be given nothing for a number", () => {
    expect(validateFormValue(shown, { amount: null }).map(({ text }) => text)).toEqual(["must be a number"]);
    expect(validateFormValue(shown, { limit: null })).toEqual([]);
  });
});

const order = graph({
  state: {
    pieces: z.number().int().min(1),
    weight: value(0),
    place: z.object({ street: z.string(), number: z.number().int() }).optional(),
    log: list<string>(),
  },
  nodes: { send: async ({ pieces, weight }) => ({ log: [`${typeof pieces} ${typeof weight}`] }) },
  edges: { start: "send" },
});

describe.skipIf(isMissing)("forms in a real browser", { timeout: 60_000 }, () => {
  test("take numbers where numbers are declared, tell what is wrong beside it, and are out of the way of a thread", async () => {
    const { url } = await serve({ graphs: { order } });
    const { page, wrong } = await opened(await browser(), `${url}/#/new?graph=order`);
    const fault = (label: string) =>
      page.locator(`.field:has(> label:text-is("${label}")) > [role="alert"]`).allInnerTexts();
    const start = page.getByRole("button", { name: "Start", exact: true });
    // A new thread has no value yet, so what the state needs is marked.
    await page.getByText("pieces (required)").waitFor();
    expect(await page.getByText("weight (required)").count()).toBe(0);
    await page.getByLabel("weight").pressSequentially("1e");
    await page.getByLabel("street").fill("Elm");
    expect(await fault("weight")).toEqual(["must be a number"]);
    await start.click();
    await expect.poll(() => page.evaluate("document.activeElement.ariaInvalid")).toBe("true");
    expect(await page.locator(".field > .bad").allInnerTexts()).toEqual([
      "is required",
      "must be a number",
      "is required",
    ]);
    await page.getByLabel("pieces").fill("1.5");
    await page.getByLabel("weight").fill("10");
    await page.getByLabel("number").fill("7");
    await expect.poll(() => page.locator(".field > .bad").allInnerTexts()).toEqual(["must be an integer"]);
    await page.getByLabel("pieces").fill("2");
    await page.getByText("Metadata of the thread").click();
    await page.getByLabel("Metadata, as JSON").fill('{"title": ');
    await start.click();
    await page.getByText("The metadata of the thread must be a JSON object").waitFor();
    await page.getByLabel("Metadata, as JSON").fill('{"title": "two pieces"}');
    await start.click();
    await page.waitForSelector('a.thread:has-text("two pieces")');
    await page.waitForSelector('.state:has-text("number number")');
    const id = page.url().split("/").at(-1);
    const state = async (): Promise<unknown> =>
      ((await (await get(`${url}/threads/${id}/state`)).json()) as { values: unknown }).values;
    const place = { street: "Elm", number: 7 };
    expect(await state()).toEqual({ pieces: 2, weight: 10, place, log: ["number number"] });

    // The optional fields appear on request; the button that starts a run is always there.
    expect(await page.getByLabel("pieces").isVisible()).toBe(false);
    const run = page.getByRole("button", { name: "Run", exact: true });
    const more = page.locator(".composer [aria-expanded]");
    await more.click();
    // The state has a value for it by now.
    expect(await page.getByText("pieces (required)").count()).toBe(0);
    await page.getByLabel("street").fill("Oak");
    await more.click();
    await run.click();
    await expect.poll(() => page.locator(".composer .bad").allInnerTexts()).toEqual(["is required"]);
    await page.setViewportSize({ width: 390, height: 700 });
    const { bottom } = await run.evaluate(
      (one) => one.getBoundingClientRect().toJSON() as { bottom: number },
    );
    expect(bottom).toBeLessThanOrEqual(700);

    await page.click('.tabs a:has-text("History")');
    await page.getByRole("button", { name: "Edit state" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("pieces").fill("");
    await dialog.getByRole("button", { name: "Save" }).click();
    await expect.poll(() => dialog.locator(".bad").allInnerTexts()).toEqual(["must be an integer"]);
    await dialog.getByLabel("pieces").fill("5");
    await dialog.getByLabel("number").fill("8");
    await dialog.getByLabel("street").fill("Ash");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.waitForSelector('.moment h3:has-text("update")');
    expect(await state()).toMatchObject({ pieces: 5, weight: 10, place: { street: "Ash", number: 8 } });
    expect(Object.keys(((await state()) as { place: object }).place)).toEqual(["street", "number"]);
    expect(wrong).toEqual([]);
  });

  test("tell an optional yes or no that is not set from a no, and can leave it so again", async () => {
    const flags = graph({
      state: {
        urgent: z.boolean().optional(),
        paid: z.boolean().default(true),
        log: list<string>(),
      },
      nodes: { send: async ({ urgent, paid }) => ({ log: [`urgent ${urgent}, paid ${paid}`] }) },
      edges: { start: "send" },
    });
    const { url } = await serve({ graphs: { flags } });
    const { page, wrong } = await opened(await browser(), `${url}/#/new?graph=flags`);
    const urgent = page.getByRole("radiogroup", { name: "urgent" });
    const choices = async () => (await urgent.locator("label").allInnerTexts()).map((text) => text.trim());
    await expect.poll(choices).toEqual(["not set", "yes", "no"]);
    expect(await urgent.getByLabel("not set").isChecked()).toBe(true);
    // One with a default is on or off.
    expect(await page.getByRole("checkbox", { name: "paid" }).isChecked()).toBe(true);
    const run = async (choice: string, button: string, told: string) => {
      await urgent.getByLabel(choice, { exact: true }).check();
      await page.getByRole("button", { name: button, exact: true }).click();
      await page.waitForSelector(`.state:has-text("${told}")`);
    };
    await urgent.getByLabel("yes").check();
    await run("not set", "Start", "urgent undefined, paid true");
    await page.locator(".composer [aria-expanded]").click();
    await run("no", "Run", "urgent false, paid true");
    expect(wrong).toEqual([]);
  });

  test("refuse integers that would lose digits, keep them as they were typed, and send no others", async () => {
    const sums = graph({
      state: {
        id: z.int().optional(),
        extra: z.record(z.string(), z.unknown()).optional(),
        log: list<string>(),
      },
      nodes: { note: async ({ id, extra }) => ({ log: [`${id} and ${JSON.stringify(extra)}`] }) },
      edges: { start: "note" },
    });
    const { url } = await serve({ graphs: { sums } });
    const { page, wrong } = await opened(await browser(), `${url}/#/new?graph=sums`);
    const id = page.getByLabel("id", { exact: true });
    const extra = page.getByLabel("extra", { exact: true });
    const start = page.getByRole("button", { name: "Start", exact: true });
    const faults = () => page.locator(".field > .bad").allInnerTexts();
    await id.pressSequentially("9007199254740993");
    const fault = "9007199254740993 cannot be represented exactly: it would be sent as 9007199254740992";
    expect(await faults()).toEqual([fault]);
    expect(await id.inputValue()).toBe("9007199254740993");
    await extra.fill('{"sum": 9007199254740993}');
    const hint = `${fault}. To keep all digits, put it in quotes.`;
    await expect.poll(faults).toEqual([fault, hint]);
    expect(await id.inputValue()).toBe("9007199254740993");
    await start.click();
    expect(page.url()).toContain("/#/new");
    await id.fill("9007199254740991");
    await extra.fill('{"sum": "9007199254740993"}');
    await expect.poll(faults).toEqual([]);
    await start.click();
    await page.waitForSelector(`.state:has-text('9007199254740991 and {"sum":"9007199254740993"}')`);
    expect(wrong).toEqual([]);
  });

  test("show a value of another type than the schema's as JSON, and leave it as it is until it is changed", async () => {
    const described = (topic: z.ZodType) =>
      graph({
        state: {
          topic: topic.optional(),
          pieces: z.union([z.literal("few"), z.number()]).optional(),
          note: z.string().optional(),
        },
        nodes: { stay: async () => ({}) },
        edges: { start: "stay" },
      });
    const data = await mkdtemp(join(tmpdir(), "heddle-"));
    const before = await serve({ graphs: { desk: described(z.any()) }, data });
    const thread = await newThread(before.url);
    const input = { topic: { a: ["x"] }, note: "kept" };
    await postJson(`${before.url}/threads/${thread}/runs/wait`, { assistant_id: "desk", input });
    await before.close();
    const { url } = await serve({ graphs: { desk: described(z.string()) }, data });
    const { page } = await opened(await browser(), `${url}/#/threads/${thread}?tab=history`);
    await page.getByRole("button", { name: "Edit state" }).click();
    const dialog = page.getByRole("dialog");
    const topic = dialog.getByRole("textbox", { name: "topic" });
    expect(JSON.parse(await topic.inputValue())).toEqual({ a: ["x"] });
    await dialog.getByText("The value is not a string, so it is shown as JSON.").waitFor();
    await dialog.getByLabel("note").fill("changed");
    await dialog.getByText("Changes note").waitFor();
    await topic.fill('"tea"');
    await dialog.getByText("Changes topic, note").waitFor();
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    const state = (await (await get(`${url}/threads/${thread}/state`)).json()) as { values: unknown };
    expect(state.values).toMatchObject({ topic: "tea", note: "changed" });
  });

  test("show what was typed as JSON and no field can show as JSON in that field", async () => {
    const { url } = await serve({ graphs: { order } });
    const { page } = await opened(await browser(), `${url}/#/new?graph=order`);
    await page.getByRole("button", { name: "JSON", exact: true }).click();
    await page.getByLabel("Input, as JSON").fill('{"pieces": "three"}');
    await page.getByRole("button", { name: "JSON", exact: true }).click();
    const pieces = page.getByLabel("pieces");
    expect(await pieces.inputValue()).toBe('"three"');
    await expect.poll(() => page.getByRole("alert").count()).toBe(1);
    await pieces.fill("3");
    await expect.poll(() => page.getByRole("alert").count()).toBe(0);
    expect(await pieces.inputValue()).toBe("3");
  });

  test("compare a changed state a moment after the last key press", async () => {
    const { url } = await serve({ graphs: { order } });
    const context = await browser();
    const { page, wrong } = await opened(context, `${url}/#/new?graph=order`);
    await page.getByLabel("pieces").fill("1");
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.waitForSelector('.state:has-text("number number")');
    await page.click('.tabs a:has-text("History")');
    await page.getByRole("button", { name: "Edit state" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("No difference.").waitFor();
    await dialog.getByLabel("pieces").focus();
    // Within one task of the page, so that no time passes: the form has the new value, and is not compared yet.
    const typed = await page.evaluate(`(async () => {
      const box = document.querySelector("dialog");
      const field = document.activeElement;
      for (const text of ["123", "1234"]) {
        field.value = text;
        field.dispatchEvent(new Event("input", { bubbles: true }));
        for (let turn = 0; turn < 10; turn++) await Promise.resolve();
      }
      return {
        isComparing: box.querySelector('[aria-label="Changes"]').getAttribute("aria-busy"),
        compared: box.querySelectorAll(".diff").length,
        told: box.innerText.includes("Changes pieces"),
      };
    })()`);
    expect(typed).toEqual({ isComparing: "true", compared: 0, told: true });
    await expect.poll(() => dialog.locator(".diff ins").innerText()).toContain('"pieces": 1234');
    expect(wrong).toEqual([]);
  });

  test("keep the focus and the text when the list of assistants arrives while somebody types", async () => {
    const { url } = await serve({ graphs: { order } });
    const context = await browser();
    const assistants = await heldBack(context, "**/assistants/search");
    const { page } = await opened(context, `${url}/#/new?graph=order`);
    await page.getByLabel("pieces").focus();
    await page.keyboard.type("1");
    assistants.pass();
    await page.waitForSelector('option:checked:has-text("order")', { state: "attached" });
    await page.keyboard.type("2");
    expect(await page.getByLabel("pieces").inputValue()).toBe("12");
    await expect.poll(() => page.evaluate("document.activeElement.inputMode")).toBe("decimal");
  });

  test("leave no empty thread behind when the server refuses the run", async () => {
    const { url } = await serve({ graphs: { strict, other: strict } });
    const { page } = await opened(await browser(), `${url}/#/new?graph=strict`);
    await page.getByRole("button", { name: "JSON" }).click();
    const field = page.getByLabel("Input, as JSON");
    await field.fill('{"size": "large"}');
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await expect.poll(() => page.innerText(".card [role=alert]")).toContain("size");
    const count = async () => (await (await post(`${url}/threads/count`)).json()) as number;
    await expect.poll(count).toBe(0);
    // The error stands in the form, and goes when another assistant is chosen, which stands above the fields.
    const choice = page.getByLabel("Assistant");
    expect((await choice.boundingBox())?.y).toBeLessThan((await field.boundingBox())?.y ?? 0);
    await choice.selectOption("other");
    await expect.poll(() => page.locator(".card [role=alert]").count()).toBe(0);
    await choice.selectOption("strict");
    await field.fill('{"size": 3}');
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.waitForSelector(".head h2");
    await expect.poll(() => page.url()).toContain("#/threads/");
    expect(await count()).toBe(1);
  });

  test("do not start a run before the schema of its input is loaded", async () => {
    const { url } = await serve({ graphs: { order } });
    const context = await browser();
    const schemas = await heldBack(context, "**/schemas");
    const { page } = await opened(context, `${url}/#/new?graph=order`);
    await page.waitForSelector('option:checked:has-text("order")', { state: "attached" });
    const start = page.getByRole("button", { name: "Start", exact: true });
    expect(await start.isDisabled()).toBe(true);
    schemas.pass();
    await page.getByLabel("pieces").waitFor();
    expect(await start.isEnabled()).toBe(true);
  });

  test.each([
    ["1.05", 1.05],
    ["100.01", 100.01],
    ["-0.5", -0.5],
    ["0.001", 0.001],
    ["1e3", 1_000],
    [".5", 0.5],
    ["1.", 1],
  ])("take the number %s as it is typed, key by key", async (text, number) => {
    const priced = graph({
      state: { price: z.number() },
      nodes: { pay: async () => ({}) },
      edges: { start: "pay" },
    });
    const { url } = await serve({ graphs: { priced } });
    const { page, wrong } = await opened(await browser(), `${url}/#/new?graph=priced`);
    const price = page.getByLabel("price");
    await price.focus();
    await page.keyboard.type(text);
    expect(await price.inputValue()).toBe(text);
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.waitForSelector(`.state:has-text("price: ${number}")`);
    expect(wrong).toEqual([]);
  });

  test("refuse a number that is none, and leave it as it is: with a comma, too large, a word", async () => {
    const { url } = await serve({ graphs: { order } });
    const { page, wrong } = await opened(await browser(), `${url}/#/new?graph=order`);
    const pieces = page.getByLabel("pieces");
    for (const [text, fault] of [
      ["10,05", "must be a number"],
      ["1e400", "too large"],
      ["ten", "must be a number"],
    ] as const) {
      await pieces.fill("");
      await page.keyboard.type(text);
      await page.getByText(fault).waitFor();
      expect(await pieces.inputValue()).toBe(text);
      await page.getByRole("button", { name: "Start", exact: true }).click();
      expect(page.url()).toContain("/#/new");
    }
    await pieces.fill("5");
    await pieces.hover();
    await page.mouse.wheel(0, 100);
    expect(await pieces.inputValue()).toBe("5");
    expect(wrong).toEqual([]);
  });

  test("keep the JSON input when another assistant is chosen", async () => {
    const { url } = await serve({ graphs: { order } });
    const { page } = await opened(await browser(), `${url}/#/new?graph=order`);
    await page.waitForSelector('option:checked:has-text("order")', { state: "attached" });
    await page.getByLabel("pieces").fill("2");
    await page.getByRole("button", { name: "JSON", exact: true }).click();
    await page.getByLabel("Input, as JSON").fill('{"pieces": 3}');
    await page.getByLabel("Assistant").selectOption("approval");
    expect(await page.getByLabel("Input, as JSON").inputValue()).toBe('{"pieces": 3}');
  });

  test("of a run's options keep what is no JSON object, name it, and send nothing before it is one", async () => {
    const { url } = await serve({ graphs: { order } });
    const { page, wrong } = await opened(await browser(), `${url}/#/new?graph=order`);
    const start = page.getByRole("button", { name: "Start", exact: true });
    const options = page.getByRole("button", { name: "Options" });
    const config = page.getByLabel("Config, as JSON");
    const dialog = page.getByRole("dialog");
    const close = dialog.getByRole("button", { name: "Close" });
    await page.getByLabel("pieces").fill("2");
    for (const bad of ['{"tags": [', "[1]"]) {
      await options.click();
      await config.fill(bad);
      await dialog
        .getByRole("alert")
        .getByText(/^(Invalid JSON|Not a JSON object)/)
        .waitFor();
      await close.click();
      await start.click();
      await page.getByText("In the options, config is not a JSON object.").waitFor();
    }
    await options.click();
    expect(await config.inputValue()).toBe("[1]");
    await config.fill('{"tags": ["a"]}');
    await close.click();
    await start.click();
    await page.waitForSelector('.state:has-text("number number")');
    const id = page.url().split("/").at(-1);
    const [run] = (await (await get(`${url}/threads/${id}/runs`)).json()) as { kwargs: unknown }[];
    expect(run?.kwargs).toMatchObject({ config: { tags: ["a"] } });
    expect(wrong).toEqual([]);
  });

  test("of a run's options do not start the run when Enter is pressed in one", async () => {
    const { url } = await serve({ graphs: { strict } });
    const { page, wrong } = await opened(await browser(), `${url}/#/new?graph=strict`);
    await page.getByLabel("size").fill("3");
    await page.getByRole("button", { name: "Options" }).click();
    await page.getByLabel("Pause before these nodes").focus();
    await page.keyboard.type("keep");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await (await post(`${url}/threads/count`)).json()).toBe(0);
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.waitForURL(/#\/threads\//);
    expect(wrong).toEqual([]);
  });

  test("of a run's options show what the assistant supplies for the context, and need not repeat it", async () => {
    const remind = graph({
      state: { said: value("") },
      context: z.object({ tone: z.string(), limit: z.number().max(5).default(1) }),
      nodes: { say: async (_, { context }) => ({ said: `${context.tone} ${context.limit}` }) },
      edges: { start: "say" },
    });
    const { url } = await serve({ graphs: { remind } });
    const { assistant_id } = await postJson<{ assistant_id: string }>(`${url}/assistants`, {
      graph_id: "remind",
      name: "warm one",
      context: { tone: "warm", limit: 3 },
    });
    const { page, wrong } = await opened(await browser(), `${url}/#/new?graph=${assistant_id}`);
    const start = page.getByRole("button", { name: "Start", exact: true });
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "Options" }).click();
    expect(await dialog.getByLabel("tone").getAttribute("placeholder")).toBe("warm");
    expect(await dialog.getByLabel("limit").getAttribute("placeholder")).toBe("3");
    await dialog.getByLabel("limit").fill("9");
    await dialog.getByText("must be at most 5").waitFor();
    await dialog.getByLabel("limit").fill("4");
    await dialog.getByRole("button", { name: "Close" }).click();
    await start.click();
    await page.waitForSelector('.state:has-text("warm 4")');
    expect(wrong).toEqual([]);
  });

  test("send no JSON input that is no object, and say so", async () => {
    const { url } = await serve();
    const { page, wrong } = await opened(await browser(), `${url}/#/new`);
    await page.getByRole("button", { name: "JSON" }).click();
    const input = page.getByLabel("Input, as JSON");
    const start = page.getByRole("button", { name: "Start", exact: true });
    for (const bad of ["[1]", '"hello"', "5"]) {
      await input.fill(bad);
      await page.getByText("The input must be a JSON object.").waitFor();
      await start.click();
      expect(new URL(page.url()).hash).toBe("#/new");
    }
    await input.fill("{}");
    await start.click();
    await page.waitForURL(/#\/threads\//);
    expect(wrong).toEqual([]);
  });

  test("have a field for a key that every object inherits, with the value that is there", async () => {
    const inherited = graph({
      state: { constructor: z.unknown().optional(), toString: value("") },
      nodes: { keep: async () => ({}) },
      edges: { start: "keep" },
    });
    const { url } = await serve({ graphs: { inherited } });
    const { page, wrong } = await opened(await browser(), `${url}/#/new?graph=inherited`);
    await expect.poll(() => page.getByLabel("constructor").inputValue()).toBe("");
    await page.getByLabel("constructor").fill('{"a": 1}');
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.locator(".state", { hasText: "constructor" }).waitFor();
    expect(wrong).toEqual([]);
  });

  test("keep what is typed while the message before it is on its way", async () => {
    const { url } = await serve();
    const thread = await newThread(url);
    const context = await browser();
    const { page } = await opened(context, `${url}/#/threads/${thread}`);
    const message = page.getByLabel("Message", { exact: true });
    const create = await heldBack(context, /\/runs$/);
    await message.fill("one");
    const sent = page.waitForRequest(/\/runs$/);
    await message.press("Enter");
    await sent;
    await message.fill("two");
    const answer = page.waitForResponse(/\/runs$/);
    create.pass();
    await answer;
    await page.locator('.run-form[aria-busy="false"]').waitFor();
    expect(await message.inputValue()).toBe("two");
    await message.press("Enter");
    await expect.poll(() => message.inputValue()).toBe("");
  });
});
