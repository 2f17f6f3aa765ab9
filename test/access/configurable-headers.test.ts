import { expect, test } from "vitest";
import {
  createHeaderSelector,
  type HeaderPatterns,
  parseHeaderPatterns,
} from "../../src/access/configurable-headers.ts";

const refusing = (what: string): never => {
  throw new Error(what);
};

const select = (patterns: HeaderPatterns | undefined, headers: readonly (readonly [string, string])[]) =>
  createHeaderSelector(patterns)({ headers: () => headers });

const names = (patterns: HeaderPatterns | undefined, ...sent: readonly string[]) =>
  Object.keys(
    select(
      patterns,
      sent.map((name) => [name, "1"]),
    ) ?? {},
  );

test("without patterns no header goes into a run", () => {
  expect(select(undefined, [["x-user", "1"]])).toBeUndefined();
});

test("a pattern is a whole name in any case, in which * stands for any characters", () => {
  const patterns = { includes: ["X-User-Id", "my-*", "*-tail", "a*b*c"] };
  const taken = ["x-user-id", "my-", "my-own", "long-tail", "a-b-c", "abc"];
  expect(names(patterns, ...taken, "x-user-ids", "not-my-own", "tails", "acb", "ac", "host")).toEqual(taken);
});

test("the two ends of a pattern do not share characters of the name", () => {
  expect(names({ includes: ["ab*ba"] }, "aba", "abba")).toEqual(["abba"]);
});

test("an excluded header stays out, also one that is included by its name", () => {
  expect(names({ includes: ["x-a", "x-b"], excludes: ["X-A"] }, "x-a", "x-b")).toEqual(["x-b"]);
  expect(names({ includes: ["*"], excludes: ["*"] }, "x-a", "accept")).toEqual([]);
});

test("excludes alone leave out some of x-* and user-agent", () => {
  expect(names({ excludes: ["x-secret-*"] }, "x-a", "x-secret-b", "user-agent", "accept")).toEqual([
    "x-a",
    "user-agent",
  ]);
});

const credentials = [
  "authorization",
  "proxy-authorization",
  "cookie",
  "x-api-key",
  "x-tenant-id",
  "x-service-key",
];

test("credentials are taken only by a pattern that is their name", () => {
  expect(names({ includes: ["*", "x-*", "auth*"] }, ...credentials, "x-a")).toEqual(["x-a"]);
  expect(names({ excludes: [] }, ...credentials)).toEqual([]);
  expect(names({ includes: credentials.map((name) => name.toUpperCase()) }, ...credentials)).toEqual(
    credentials,
  );
});

test("no header takes the place of what the server itself says in configurable", () => {
  const own = [
    "thread_id",
    "run_id",
    "checkpoint_map",
    "langgraph_auth_user",
    "__pregel_resuming",
    "__proto__",
  ];
  expect(names({ includes: ["*", ...own] }, ...own, "x-a")).toEqual(["x-a"]);
});

test("a repeated header is one value, as in a web request", () => {
  const sent = [
    ["x-a", "1"],
    ["x-a", "2"],
  ] as const;
  expect(select({ includes: ["x-a"] }, sent)).toEqual({ "x-a": "1, 2" });
});

test("headers of more than 8 KiB together are refused; those that are not taken do not count", () => {
  const long = "v".repeat(5_000);
  const patterns = { includes: ["x-*"] };
  expect(() =>
    select(patterns, [
      ["x-a", long],
      ["x-b", long],
    ]),
  ).toThrow("headers that http.configurable_headers names have at most 8192 bytes together");
  expect(
    select(patterns, [
      ["x-a", long],
      ["y", long],
    ]),
  ).toEqual({ "x-a": long });
});

test("the section is read, and what is wrong in it is refused by its key", () => {
  const read = (value: unknown) => parseHeaderPatterns({ configurable_headers: value }, refusing);
  expect(read({ includes: ["x-*"], excludes: null })).toEqual({ includes: ["x-*"] });
  expect([read(undefined), read(null), read(false), read({})]).toEqual(Array(4).fill(undefined));
  expect(() => read({ includes: "x-*" })).toThrow(
    "http.configurable_headers.includes must be an array of strings, without blanks",
  );
  expect(() => read({ excludes: ["a b"] })).toThrow("http.configurable_headers.excludes must be an array");
  expect(() => read(["x-*"])).toThrow("http.configurable_headers must be an object");
});
