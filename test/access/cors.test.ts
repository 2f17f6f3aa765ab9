import { expect, test } from "vitest";
import { Cors, type CorsOptions } from "../../src/access/cors.ts";
import type { HttpRequest } from "../../src/ports/transport.ts";

const asks = (headers: Record<string, string>): HttpRequest => ({
  method: "OPTIONS",
  path: "/",
  query: "",
  header: (name) => headers[name],
  headers: () => Object.entries(headers),
  body: async () => new Uint8Array(),
});

const EXPOSED = "content-location, location, x-pagination-total, x-pagination-next, x-request-id";

test("what a browser has to be let see is exposed, whatever else is", () => {
  const exposed = (options: CorsOptions) =>
    new Cors(options).answer("https://a.test", false)["access-control-expose-headers"];
  expect(exposed({})).toBe(EXPOSED);
  expect(exposed({ exposed: ["X-Own", "Location"] })).toBe(
    "x-own, location, content-location, x-pagination-total, x-pagination-next, x-request-id",
  );
});

test("everyone is told by a star, but never together with credentials", () => {
  expect(new Cors({}).answer("https://a.test", true)).toEqual({
    "access-control-allow-origin": "*",
    "access-control-expose-headers": EXPOSED,
  });
  expect(new Cors({ credentials: true }).answer("https://a.test", true)).toEqual({
    "access-control-allow-origin": "https://a.test",
    "access-control-expose-headers": EXPOSED,
    "access-control-allow-credentials": "true",
    vary: "Origin",
  });
});

test("a preflight allows the methods there are, and whatever headers it asks for", () => {
  const asked = asks({ "access-control-request-headers": "content-type,x-any" });
  expect(new Cors({}).preflight(asked)).toEqual({
    "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
    "access-control-allow-headers": "content-type,x-any",
    vary: "Origin, Access-Control-Request-Headers, Access-Control-Request-Private-Network",
  });
});

test("what is configured is allowed instead", () => {
  const cors = new Cors({ methods: ["get"], headers: ["X-A", "X-B"], maxAge: 600 });
  expect(cors.preflight(asks({ "access-control-request-headers": "x-c" }))).toMatchObject({
    "access-control-allow-methods": "GET",
    "access-control-allow-headers": "X-A, X-B",
    "access-control-max-age": "600",
  });
  const any = new Cors({ methods: ["*"], headers: ["*"] });
  expect(any.preflight(asks({ "access-control-request-headers": "x-c" }))).toMatchObject({
    "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
    "access-control-allow-headers": "x-c",
  });
});

test("a page on the public net may reach for this machine when it asks, where it may come in at all", () => {
  const asked = asks({ "access-control-request-private-network": "true" });
  expect(new Cors({}).preflight(asked)).toHaveProperty("access-control-allow-private-network", "true");
  expect(new Cors({}).preflight(asks({}))).not.toHaveProperty("access-control-allow-private-network");
});

test("nothing that came in by a header breaks out of ours", () => {
  const asked = asks({ "access-control-request-headers": "a\r\nset-cookie: b\u00ff" });
  expect(new Cors({}).preflight(asked)["access-control-allow-headers"]).toBe("aset-cookie: b");
});
