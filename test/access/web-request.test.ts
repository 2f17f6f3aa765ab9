import { expect, test } from "vitest";
import { authenticationRequestOf } from "../../src/access/web-request.ts";
import type { HttpRequest } from "../../src/ports/transport.ts";

const asked = (
  more: Partial<HttpRequest>,
  headers: readonly (readonly [string, string])[] = [],
): HttpRequest => ({
  method: "GET",
  path: "/threads",
  query: "",
  header: (name) => [["host", "here:80"] as const, ...headers].findLast(([one]) => one === name)?.[1],
  headers: () => headers,
  body: () => Promise.reject(new TypeError("not asked for")),
  ...more,
});

test("a request has the method, the URL and all headers", () => {
  const request = asked({ method: "POST", path: "/a%2Fb", query: "x=1&y=%20" }, [
    ["authorization", "Bearer x"],
    ["x-many", "1"],
    ["x-many", "2"],
    ["cookie", "a=b"],
    ["x-name", "Zo\u00eb \u4e2d"],
  ]);
  const made = authenticationRequestOf(request, true);
  expect([made?.method, made?.url, made?.body]).toEqual(["POST", "http://here/a%2Fb?x=1&y=%20", null]);
  expect(made?.headers.get("x-many")).toBe("1, 2");
  expect(made?.headers.get("cookie")).toBe("a=b");
  // One character for each byte.
  expect(Buffer.from(made?.headers.get("x-name") ?? "", "latin1").toString()).toBe("Zo\u00eb \u4e2d");
  expect(authenticationRequestOf(request, false)?.headers.has("cookie")).toBe(false);
  expect(authenticationRequestOf(request, false)?.headers.get("authorization")).toBe("Bearer x");
});

test.each(["Basic YTpi", "basic YTpi", "Digest a=b", "Negotiate x", "NTLM x"])(
  "what a browser sends by itself is left out where it is not trusted: %s",
  (authorization) => {
    const request = asked({}, [["authorization", authorization]]);
    expect(authenticationRequestOf(request, true)?.headers.get("authorization")).toBe(authorization);
    expect(authenticationRequestOf(request, false)?.headers.has("authorization")).toBe(false);
  },
);

test.each<readonly [what: string, host: string]>([
  ["a path in it", "here/admin?"],
  ["a user in it", "me@here"],
  ["nothing", ""],
  ["a fragment", "here#"],
])("a host with %s does not change the path", (_, host) => {
  const made = authenticationRequestOf(asked({}, [["host", host]]), true);
  expect(made?.url).toBe("http://localhost/threads");
});

test.each<Partial<HttpRequest>>([
  { path: "/a/../b" },
  { path: "/a/%2e%2E/b" },
  { path: "/a/." },
  { path: "/a\\..\\b" },
  { path: "a" },
  { path: "http://elsewhere/a" },
  { method: "TRACE" },
  { method: "CONNECT" },
])("%o cannot be asked about: the project's code would see another path than the server", (more) => {
  expect(authenticationRequestOf(asked(more), true)).toBeUndefined();
});

test("a header that no request can have is no request", () => {
  expect(authenticationRequestOf(asked({}, [["", "x"]]), true)).toBeUndefined();
});
