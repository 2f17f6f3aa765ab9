import { expect, test } from "vitest";
import { parseUrl } from "../../src/model/url.ts";

test("a host with letters beyond ASCII is parsed the same way however often it is asked for", () => {
  const hosts = new Set<string | undefined>();
  for (let i = 0; i < 50_000; i++) hosts.add(parseUrl("https://münchen.example/")?.host);
  expect([...hosts]).toEqual(["xn--mnchen-3ya.example"]);
});

test.each([
  ["https://", undefined],
  ["no address", undefined],
  ["/path", "http://self/path"],
])("%s beside http://self is %s", (text, href) => {
  expect(parseUrl(text, text.startsWith("/") ? "http://self" : undefined)?.href).toBe(href);
});
