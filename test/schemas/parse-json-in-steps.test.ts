import { expect, test } from "vitest";
import { readBodyObject, readBodyList } from "../../src/schemas/read-body.ts";
import { ServiceError } from "../../src/model/errors.ts";
import type { HttpRequest } from "../../src/ports/transport.ts";
import { expectEqual } from "../fixtures/expect-equal.ts";

/** Bytes: a larger body is parsed in steps. */
const LARGE = 512 * 1024;

let steps = 0;
const budget = { isSpent: () => true, next: async () => void steps++ };
const sender = { tenant: "t", workShare: () => budget };

const requestOf = (body: Uint8Array): HttpRequest => ({
  method: "POST",
  path: "/",
  query: "",
  header: () => undefined,
  headers: () => [],
  body: async () => body,
});

/** The results of parsing in steps and at once, which must be equal. */
async function both(body: Uint8Array | string): Promise<[unknown, unknown]> {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  steps = 0;
  const told = (cause: unknown) => ({
    error: cause instanceof ServiceError ? `${cause.code} ${cause.message}` : String(cause),
  });
  const results = await Promise.all([
    readBodyObject(requestOf(bytes), sender).catch(told),
    readBodyObject(requestOf(bytes)).catch(told),
  ]);
  return results as [unknown, unknown];
}

const filler = (bytes: number) => `"${"x".repeat(bytes)}"`;
const many = (part: string, bytes = LARGE) =>
  Array.from({ length: bytes / part.length }, () => part).join(",");

test.each([
  ["a list of numbers", `{"a":[${many("1000.5")}]}`],
  ["a list of objects", `{"a":[${many('{"b":[1,{"c":"d,]}"}]}')}],"z":1}`],
  ["a wide object", `{${Array.from({ length: 60_000 }, (_, i) => `"m${i}":${i}`).join(", ")}}`],
  ["names twice, with another place", `{"b":0,"a":[${many("1.5")}],"b":1,"a":${filler(LARGE)},"c":2}`],
  ["numbers as names", `{"2":0,"a":[${many("1.5")}],"1":${filler(LARGE)},"0":[${many("2")}]}`],
  ["a reserved name", `{"__proto__":[${many("1.5")}],"a":{"__proto__":${filler(LARGE)}}}`],
  ["a long text", `{"a": ${filler(2 * LARGE)} , "b":1}`],
  ["a long text with escapes", `{"a":"${'\\n\\u00e9\\\\\\"'.repeat(LARGE / 8)}"}`],
  ["a long text with pairs of escapes", `{"a":"${"\\ud83d\\ude00".repeat(LARGE / 6)}"}`],
  ["a long text of two bytes a character", `{"a":"x${"é".repeat(LARGE)}"}`],
  ["a long text that ends with backslashes", `{"a":"${"x".repeat(LARGE)}\\\\","b":"${"y".repeat(300)}\\""}`],
  ["a long name", `{${filler(LARGE)}:1,"b":[${many("1.5")}]}`],
  ["texts that are not ASCII", `{"a":["${"é😀".repeat(LARGE / 4)}",${many('"ü,"')}]}`],
  ["levels of long ones", `[[[`.replaceAll("[", '{"a":[1,') + many("[2]") + `,3],"b":4}`.repeat(3)],
  ["blanks everywhere", ` \n{ "a" : [ ${many(" 1 , [ 2 ] ")} ] ,\t"b" : ${filler(LARGE)} } \r\n`],
  ["blanks alone within", `{"a":[${" ".repeat(LARGE)}],"b":{${"\n".repeat(LARGE)}}}`],
  ["a mark of the byte order", `\ufeff{"a":[${many("1.5")}]}`],
  ["null, which is left out", `{"a":null,"b":[null,${many("1.5")}]}`],
])("a large body is read in steps as it is at once: %s", async (_, body) => {
  const [inSteps, atOnce] = await both(body);
  expect(atOnce).not.toHaveProperty("error");
  expect(steps).toBeGreaterThan(3);
  // Including the order of the members.
  expect(JSON.stringify(inSteps) === JSON.stringify(atOnce)).toBe(true);
  expectEqual(inSteps, atOnce);
});

test.each([
  ["a comma at the end", `{"a":[${many("1.5")},]}`],
  ["a comma at the start", `{"a":[,${many("1.5")}]}`],
  ["a comma alone", `{"a":[${" ".repeat(LARGE)},${" ".repeat(LARGE)}]}`],
  ["two commas", `{"a":[${many("1.5")},,${many("1.5")}]}`],
  ["two commas between long ones", `{"a":[[${many("1.5")}],,[${many("1.5")}]]}`],
  ["no comma between long ones", `{"a":[[${many("1.5")}] [${many("1.5")}]]}`],
  ["no comma after a long one", `{"a":[[${many("1.5")}] 1]}`],
  ["no comma before a long one", `{"a":[1 [${many("1.5")}]]}`],
  ["a sign before a long one", `{"a":[-[${many("1.5")}]]}`],
  ["a sign before a long member", `{"a":-[${many("1.5")}]}`],
  ["a text after a long text", `{"a":[${filler(LARGE)}${filler(LARGE)}]}`],
  ["no name", `{[${many("1.5")}]}`],
  ["no value", `{"a":,"b":[${many("1.5")}]}`],
  ["two colons", `{"a":"b":[${many("1.5")}]}`],
  ["the other bracket", `{"a":[${many("1.5")}}}`],
  ["the other bracket within", `{"a":[${many("[1}")}]}`],
  ["a comma at the end of the object", `{"a":[${many("1.5")}],}`],
  ["something after the end", `{"a":[${many("1.5")}]} 1`],
  ["a bracket after the end", `{"a":[${many("1.5")}]}}`],
  ["something before the start", `1{"a":[${many("1.5")}]}`],
  ["no end", `{"a":[${many("1.5")}`],
  ["a text without an end", `{"a":[${many("1.5")},"x]}`],
  ["a line break in a long text", `{"a":"${"x".repeat(LARGE)}\n"}`],
  ["a mark of the byte order within", `{"a":[${many("1.5")},\ufeff1]}`],
  [
    "bytes that are no UTF-8",
    Buffer.concat([Buffer.from(`{"a":[${many("1.5")},"`), Buffer.of(0xff), Buffer.from('"]}')]),
  ],
  ["half of a pair", `{"a":{"b":[${many("1.5")},"\\ud800"]}}`],
  ["half of a pair in a long text", `{"a":["\\udc00${"x".repeat(LARGE)}"]}`],
  ["half of a pair amid escapes", `{"a":["${"\\n".repeat(LARGE)}\\ud800${"\\n".repeat(LARGE)}"]}`],
  ["half of a pair in a name", `{"a":{"\\ud800":[${many("1.5")}]}}`],
])("a large body that is wrong is refused as it is at once: %s", async (_, body) => {
  const [inSteps, atOnce] = await both(body);
  expect(atOnce).toHaveProperty("error");
  expectEqual(inSteps, atOnce);
});

test("a large body with some byte changed is read, or refused, as it is at once", async () => {
  let state = 7;
  const random = (below: number) => (state = (state * 1_103_515_245 + 12_345) % 2 ** 31) % below;
  const body = Buffer.from(
    `{"a":[${many('{"b":[1,-2.5e3,"\\n,]"],"c":{"d":null}}', LARGE / 4)}],"t":${filler(150_000)},"l":[[${many("[true]", 320_000)}],1]}`,
  );
  const odd = '{}[],:"\\ 1a';
  expect(body.length).toBeGreaterThan(LARGE);
  for (let i = 0; i < 60; i++) {
    const changed = Buffer.from(body);
    // Mostly near structural characters, and near the ends.
    const at = random(body.length);
    changed[at] = odd.charCodeAt(random(odd.length));
    const [inSteps, atOnce] = await both(changed);
    expect(
      JSON.stringify(inSteps) === JSON.stringify(atOnce),
      `byte ${at}: ${String.fromCharCode(changed[at] ?? 0)}`,
    ).toBe(true);
  }
}, 60_000);

test("a list of objects that is large is read in steps", async () => {
  steps = 0;
  const text = `[{"a":[${many("1.5")}]},{"b":null}]`;
  const list = await readBodyList(requestOf(Buffer.from(text)), sender);
  expect(steps).toBeGreaterThan(3);
  expect(list).toEqual([JSON.parse(text)[0], {}]);
});
