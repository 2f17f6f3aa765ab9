import { describe, expect, test } from "vitest";
import { AccessControl, type AccessOptions } from "../../src/access/access-control.ts";
import { parseKeyList } from "../../src/access/api-keys.ts";
import type { HttpRequest } from "../../src/ports/transport.ts";
import { SimulatedClock } from "../simulation/clock.ts";
import { SimulatedRandom } from "../simulation/random.ts";

type Fields = Readonly<Record<string, string>>;

const request = (headers: Fields, query = ""): HttpRequest => ({
  method: "GET",
  path: "/",
  query,
  header: (name) => ({ host: "127.0.0.1:2024", ...headers })[name],
  headers: () => Object.entries({ host: "127.0.0.1:2024", ...headers }),
  body: async () => new Uint8Array(),
});

function doorOf(options: AccessOptions = {}, clock = new SimulatedClock()): AccessControl {
  return new AccessControl(options, { clock, random: new SimulatedRandom(1) });
}

const refused = (door: AccessControl, headers: Fields): boolean => {
  const guest = door.check(request(headers));
  const socket = door.checkSocket(request(headers));
  expect(socket.refusal === undefined).toBe(guest.refusal === undefined);
  if (guest.refusal !== undefined) expect(guest).toMatchObject({ tenant: undefined, headers: {} });
  return guest.refusal !== undefined;
};

describe("without a key: the host", () => {
  test.each([
    "localhost",
    "localhost:2024",
    "LOCALHOST",
    "localhost.",
    "app.localhost:1",
    "127.0.0.1",
    "127.8.9.1:80",
    "[::1]",
    "[::1]:2024",
  ])("%s is this machine", (host) => {
    expect(refused(doorOf(), { host })).toBe(false);
  });

  test.each([
    "evil.test",
    "evil.test:2024",
    "127.0.0.1.evil.test",
    "localhost.evil.test",
    "notlocalhost",
    "127.evil.test",
    "192.168.1.5",
    "[fe80::1]",
    "localhost@evil.test",
    "evil.test/localhost",
    "localhost:2024:2024",
    "localhost:port",
    "",
    " localhost",
    "[localhost",
  ])("%s is refused, again too", (host) => {
    const door = doorOf();
    expect(refused(door, { host })).toBe(true);
    expect(refused(door, { host })).toBe(true);
  });

  test("listed ones are served", () => {
    const door = doorOf({ hosts: ["heddle.test", "Other.test:8080", "*.under.test"] });
    const served = ["heddle.test", "HEDDLE.test:9", "other.test:8080", "a.b.under.test"];
    expect(served.map((host) => refused(door, { host }))).toEqual([false, false, false, false]);
    const others = ["other.test", "under.test", "eunder.test", "xheddle.test"];
    expect(others.map((host) => refused(door, { host }))).toEqual([true, true, true, true]);
    const v6 = doorOf({ hosts: ["[2001:db8::1]:2024", "[2001:db8::2]"] });
    const addresses = ["[2001:DB8::1]:2024", "[2001:db8::1]:9", "[2001:db8::2]:9"];
    expect(addresses.map((host) => refused(v6, { host }))).toEqual([false, true, false]);
    expect(refused(doorOf({ hosts: ["*"] }), { host: "any.test" })).toBe(false);
  });

  test("every address of the machine, where it listens at all of them; a name is none", () => {
    const door = doorOf({ bound: "0.0.0.0", insecure: true });
    expect(refused(door, { host: "192.168.1.5:2024" })).toBe(false);
    expect(refused(door, { host: "[fe80::1]:2024" })).toBe(false);
    expect(refused(door, { host: "evil.test" })).toBe(true);
    const one = doorOf({ bound: "192.168.1.5", insecure: true });
    expect(refused(one, { host: "192.168.1.5" })).toBe(false);
    expect(refused(one, { host: "192.168.1.6" })).toBe(true);
  });

  test("more hosts than are remembered are still told apart", () => {
    const door = doorOf();
    for (let i = 0; i < 200; i++) expect(refused(door, { host: `h${i}.test` })).toBe(true);
    expect(refused(door, { host: "localhost:7" })).toBe(false);
  });
});

describe("without a key: the page", () => {
  test.each([
    "http://localhost:3000",
    "https://localhost",
    "http://127.0.0.1:8080",
    "http://[::1]:1",
    "http://app.localhost:5173",
  ])("%s is on this machine", (origin) => {
    expect(refused(doorOf(), { origin })).toBe(false);
    expect(doorOf().check(request({ origin })).headers).toMatchObject({
      "access-control-allow-origin": origin,
      vary: "Origin",
    });
  });

  test.each([
    "https://evil.test",
    "http://localhost.evil.test",
    "http://evil.test:2024",
    "http://127.0.0.1.evil.test",
    "null",
    "",
    "file://",
    "chrome-extension://abc",
    "http://localhost@evil.test",
    "http://evil.test/http://localhost",
    "https://smith.langchain.com",
  ])("%s is refused", (origin) => {
    expect(refused(doorOf(), { origin })).toBe(true);
  });

  test("a page of ours is served, under a listed name too, behind TLS too", () => {
    const door = doorOf({ hosts: ["heddle.test"] });
    expect(refused(door, { host: "heddle.test", origin: "https://heddle.test" })).toBe(false);
    expect(refused(door, { host: "heddle.test:443", origin: "https://heddle.test" })).toBe(false);
    expect(refused(door, { host: "heddle.test:2024", origin: "http://heddle.test:2024" })).toBe(false);
    expect(refused(door, { host: "heddle.test:2024", origin: "http://heddle.test" })).toBe(true);
    expect(refused(door, { host: "heddle.test", origin: "https://other.test" })).toBe(true);
  });

  test("LangGraph Studio and Agent Chat, where they are meant", () => {
    const door = doorOf({ studio: true });
    for (const origin of [
      "https://smith.langchain.com",
      "https://eu.smith.langchain.com",
      "https://agentchat.vercel.app",
    ]) {
      expect(refused(door, { origin })).toBe(false);
    }
    expect(refused(door, { origin: "http://smith.langchain.com" })).toBe(true);
    expect(refused(door, { origin: "https://evil.test/.smith.langchain.com" })).toBe(true);
    expect(refused(door, { origin: "https://other.vercel.app" })).toBe(true);
  });

  test("listed ones, by name, under a name and by a pattern of the whole origin", () => {
    const door = doorOf({
      cors: { origins: ["https://A.test/", "https://*.b.test"], originPattern: "https://c\\d\\.test" },
    });
    const served = ["https://a.test", "https://x.b.test", "https://c1.test"];
    expect(served.map((origin) => refused(door, { origin }))).toEqual([false, false, false]);
    const others = ["https://b.test", "https://xb.test", "https://c1.test.evil.test", "http://a.test"];
    expect(others.map((origin) => refused(door, { origin }))).toEqual([true, true, true, true]);
  });

  test("an image or a script of a foreign page has no origin, and is refused; a link that was followed is not", () => {
    const door = doorOf();
    const cross = { "sec-fetch-site": "cross-site" };
    expect(refused(door, { ...cross, "sec-fetch-mode": "no-cors" })).toBe(true);
    expect(refused(door, { ...cross, referer: "https://evil.test/" })).toBe(true);
    expect(refused(door, { ...cross, referer: "http://localhost:3000/" })).toBe(false);
    const followed = { ...cross, "sec-fetch-mode": "navigate" };
    expect(refused(door, { ...followed, "sec-fetch-dest": "document" })).toBe(false);
    expect(refused(door, { ...followed, "sec-fetch-dest": "iframe" })).toBe(true);
    expect(refused(door, { "sec-fetch-site": "same-origin" })).toBe(false);
    expect(refused(door, { "sec-fetch-site": "none" })).toBe(false);
  });
});

describe("with keys", () => {
  const keys = ["first", " acme:second ", "Acme:third", "a:b:c"];

  test.each([
    [{}, undefined],
    [{ "x-api-key": "first" }, "_"],
    [{ authorization: "Bearer first" }, "_"],
    [{ authorization: "bearer  second " }, "acme"],
    [{ "x-api-key": "second" }, "acme"],
    // A name that no tenant can have is part of the key.
    [{ "x-api-key": "Acme:third" }, "_"],
    [{ "x-api-key": "third" }, undefined],
    [{ "x-api-key": "b:c" }, "a"],
    [{ "x-api-key": "acme:second" }, undefined],
    [{ "x-api-key": "" }, undefined],
    [{ "x-api-key": "firs" }, undefined],
    [{ "x-api-key": "first " }, undefined],
    [{ "x-api-key": "wrong", authorization: "Bearer first" }, undefined],
    [{ authorization: "Basic first" }, undefined],
    [{ authorization: "Bearer" }, undefined],
  ] satisfies [Fields, string | undefined][])("%j comes in as %s", (headers, tenant) => {
    expect(doorOf({ keys }).check(request(headers)).tenant).toBe(tenant);
  });

  test("any host and any page may ask: without the key they get nothing", () => {
    const guest = doorOf({ keys }).check(request({ host: "any.test", origin: "https://any.test" }));
    expect(guest.refusal).toBeUndefined();
    expect(guest.headers["access-control-allow-origin"]).toBe("*");
  });

  test("pages that are not listed may not read, where some are, and open no socket", () => {
    const door = doorOf({ keys, cors: { origins: ["https://a.test"] } });
    const ask = (origin: string) => request({ origin, "x-api-key": "first" });
    expect(door.check(ask("https://a.test")).headers["access-control-allow-origin"]).toBe("https://a.test");
    for (const origin of ["https://b.test", "http://localhost:3000"]) {
      expect(door.check(ask(origin))).toEqual({ tenant: "_", headers: {} });
      expect(door.checkSocket(ask(origin)).refusal?.code).toBe("auth.forbidden");
    }
    expect(door.check(ask("http://127.0.0.1:2024")).headers).toHaveProperty("access-control-allow-origin");
  });

  test.each<[readonly string[], string]>([
    [["acme:"], "key 1 is empty"],
    [["ok", ""], "key 2 is empty"],
    [["with blank"], "key 1 is empty, or has characters"],
    [["same", "acme:same"], "two of the keys are the same"],
  ])("%j are refused, and not repeated", (odd, message) => {
    expect(() => doorOf({ keys: odd })).toThrow(message);
    expect(() => doorOf({ keys: odd })).not.toThrow(/same:|acme/);
  });

  test("a list with commas", () => {
    expect(parseKeyList(" a, b:c ,,")).toEqual(["a", "b:c"]);
    expect(() => parseKeyList(" , ")).toThrow("the list of keys holds none");
  });
});

describe("a server that others can reach", () => {
  test.each(["0.0.0.0", "::", "192.168.1.5", "heddle.test", "127.0.0.1.evil.test"])(
    "at %s needs a key, or to be told",
    (bound) => {
      expect(() => doorOf({ bound })).toThrow("would let other machines drive this server without a key");
      expect(doorOf({ bound, insecure: true }).check(request({})).tenant).toBe("_");
      expect(doorOf({ bound, keys: ["k"] }).check(request({})).tenant).toBeUndefined();
    },
  );

  test.each(["127.0.0.1", "127.0.0.2", "::1", "localhost"])("%s is this machine alone", (bound) => {
    expect(doorOf({ bound }).check(request({})).tenant).toBe("_");
  });
});

describe("a token", () => {
  const asked = (token: string) => request({}, new URLSearchParams({ token }).toString());

  test("opens sockets of its tenant alone, and nothing else, for a minute", () => {
    const clock = new SimulatedClock();
    const door = doorOf({ keys: ["k", "acme:l"] }, clock);
    const { token, expires } = door.token({ tenant: "acme" });
    expect(expires).toBe(clock.now() + 60_000);
    expect(door.checkSocket(asked(token)).tenant).toBe("acme");
    expect(door.check(asked(token)).tenant).toBeUndefined();
    clock.advance(59_999);
    expect(door.checkSocket(asked(token)).tenant).toBe("acme");
    clock.advance(1);
    expect(door.checkSocket(asked(token)).tenant).toBeUndefined();
  });

  test("that was changed is none", () => {
    const clock = new SimulatedClock();
    const door = doorOf({ keys: ["k"] }, clock);
    const { token } = door.token({ tenant: "_" });
    const [, expires, sign] = token.split(".");
    const odd = [
      `acme.${expires}.${sign}`,
      `_.${Number(expires) + 1}.${sign}`,
      `_.${expires}.`,
      `_.${expires}`,
      `${token}x`,
      token.slice(0, -2),
      "",
      ".",
      "_.9999999999999.AAAA",
      "x".repeat(10_000),
    ];
    expect(odd.map((text) => door.checkSocket(asked(text)).tenant)).toEqual(odd.map(() => undefined));
  });

  test("is good for every process that has the secret, and for no other", () => {
    const secret = "s".repeat(32);
    const { token } = doorOf({ keys: ["k"], secret }).token({ tenant: "_" });
    expect(doorOf({ keys: ["other"], secret }).checkSocket(asked(token)).tenant).toBe("_");
    expect(doorOf({ keys: ["k"], secret: "t".repeat(32) }).checkSocket(asked(token)).tenant).toBeUndefined();
    expect(() => doorOf({ keys: ["k"], secret: "short" })).toThrow("must have 32 bytes or more");
  });
});

describe("paths", () => {
  test("stand under the mount, and nowhere else", () => {
    const door = doorOf({ mount: "/api/v1" });
    expect(["/api/v1/ok", "/api/v1", "/api/v1/"].map((path) => door.path(path))).toEqual(["/ok", "/", "/"]);
    expect(["/ok", "/api/v12/ok", "/api", "/"].map((path) => door.path(path))).toEqual(
      Array.from({ length: 4 }),
    );
  });

  test("of a part that is off are nowhere; health is never off", () => {
    const served = (disabled: NonNullable<AccessOptions["disabled"]>) => {
      const door = doorOf({ disabled });
      const all = [
        "/ok",
        "/info",
        "/threads",
        "/threads/t/state",
        "/threads/t/runs",
        "/runs/wait",
        "/assistants",
      ];
      return all.filter((path) => door.path(path) !== undefined);
    };
    expect(served(["runs", "meta"])).toEqual(["/ok", "/threads", "/threads/t/state", "/assistants"]);
    expect(served(["threads"])).toEqual(["/ok", "/info", "/threads/t/runs", "/runs/wait", "/assistants"]);
    expect(served(["assistants", "store", "mcp"])).not.toContain("/assistants");
    // Whatever starts runs or shows their events: commands of the protocol, and the sockets at the paths of streams.
    const streams = ["/threads/t/commands", "/threads/t/stream", "/threads/t/stream/events"];
    const runs = doorOf({ disabled: ["runs"] });
    expect(streams.filter((path) => runs.path(path) !== undefined)).toEqual([]);
    expect(streams.map((path) => doorOf({ disabled: ["threads"] }).path(path))).toEqual(streams);
  });
});
