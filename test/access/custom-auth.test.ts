import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";
import { describe, expect, test } from "vitest";
import { CustomAuth } from "../../src/access/custom-auth.ts";
import type { AuthUser } from "../../src/model/auth-user.ts";
import { permitsOf } from "../../src/model/permitted-resources.ts";
import { failureResponseOf } from "../../src/schemas/error-to-response.ts";
import { Timers } from "../http/support.ts";

const request = new Request("http://localhost/threads");

const asking = (answer: unknown) =>
  new CustomAuth(new Auth().authenticate((() => answer) as never), new Timers()).authenticate(request);

async function failure(work: Promise<unknown>) {
  const cause: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  const { status, headers, body } = failureResponseOf(cause);
  return { status, headers, body: JSON.parse(body) as { detail: string; code?: string } };
}

const thrown = (what: unknown) =>
  new CustomAuth(
    new Auth().authenticate(() => {
      throw what;
    }),
    new Timers(),
  ).authenticate(request);

const FAILED = "The project's authenticate handler failed; the log has the cause";

describe("authenticate", () => {
  test.each<readonly [answer: unknown, user: object]>([
    ["alice", { identity: "alice", display_name: "alice", permissions: [], is_authenticated: true }],
    [
      Promise.resolve({ identity: "a", permissions: ["x"], display_name: "A", org: 7 }),
      { identity: "a", display_name: "A", permissions: ["x"], is_authenticated: true, org: 7 },
    ],
    [
      { identity: "a", permissions: "x", is_authenticated: false },
      { identity: "a", display_name: "a", permissions: [], is_authenticated: false },
    ],
  ])("%o is a user", async (answer, user) => {
    expect(await asking(answer)).toEqual(user);
  });

  test.each([undefined, null, "", {}, { identity: "" }, { identity: 7 }, { user: { id: "a" } }, 7, true, []])(
    "%o is none: a failure of the project's code, of which the client learns nothing",
    async (answer) => {
      expect(await failure(asking(answer))).toMatchObject({ status: 500, body: { code: "auth.failed" } });
    },
  );

  test.each<readonly [what: unknown, status: number, code: string, detail: string]>([
    [new HTTPException(401, { message: "Who?" }), 401, "auth.required", "Who?"],
    [new HTTPException(401), 401, "auth.required", "Unauthorized"],
    [new HTTPException(403, { message: "Not you" }), 403, "auth.forbidden", "Not you"],
    [new HTTPException(418), 418, "auth.refused", "I'm a Teapot"],
    [new HTTPException(500, { message: "it is down" }), 500, "auth.refused", "it is down"],
    // An error of another copy of the package.
    [{ status: 401, headers: {}, message: "by its shape" }, 401, "auth.required", "by its shape"],
    [{ status: 401, headers: {} }, 401, "auth.required", "Not authorized"],
    // Errors that are not refusals.
    [new HTTPException(200 as never), 500, "auth.failed", FAILED],
    [{ status: 401 }, 500, "auth.failed", FAILED],
    [{ status: "401", headers: {} }, 500, "auth.failed", FAILED],
    [new Error("password=hunter2"), 500, "auth.failed", FAILED],
    ["text", 500, "auth.failed", FAILED],
    [undefined, 500, "auth.failed", FAILED],
  ])("throws %o: %i", async (what, status, code, detail) => {
    expect(await failure(thrown(what))).toMatchObject({ status, body: { code, detail } });
  });

  test("the headers of a refusal are sent, but for those that frame the answer", async () => {
    const headers = { "WWW-Authenticate": "Basic", "X-Odd": "a\r\nset-cookie: b", "Content-Length": "7" };
    const own = await failure(
      thrown(new HTTPException(401, { headers: { ...headers, "content-type": "x/y" } })),
    );
    expect(own.headers).toEqual({ "content-type": "application/json", "www-authenticate": "Basic" });
    const listed = await failure(
      thrown(new HTTPException(429, { headers: new Headers({ a: "b" }) as never })),
    );
    expect(listed.headers).toMatchObject({ a: "b", "retry-after": "1" });
  });

  test("takes ten seconds at most, and so many requests at once", async () => {
    const timers = new Timers();
    const auth = new CustomAuth(
      new Auth().authenticate(() => new Promise<string>(() => undefined)),
      timers,
    );
    const waiting = Array.from({ length: 1_024 }, () => failure(auth.authenticate(request)));
    expect(await failure(auth.authenticate(request))).toMatchObject({ status: 429 });
    timers.advance(10_000);
    expect(new Set((await Promise.all(waiting)).map(({ status }) => status))).toEqual(new Set([503]));
    const again = failure(auth.authenticate(request));
    timers.advance(10_000);
    expect((await again).status).toBe(503);
  });

  test.each([undefined, null, {}, { "~handlerCache": null }, { "~handlerCache": {} }, new Auth()])(
    "%o is no Auth that says who anybody is: the server does not start",
    (auth) => {
      expect(() => new CustomAuth(auth as never, new Timers())).toThrow(
        /^auth (is no Auth|has no authenticate)/,
      );
    },
  );
});

const alice: AuthUser = { identity: "a", permissions: ["p"], display_name: "a", is_authenticated: true };

describe("the rules", () => {
  const auth = () => new Auth().authenticate(() => "a");
  const decide = (rules: unknown, event: "threads:read" | "threads:create" | "store:put", value = {}) =>
    new CustomAuth(rules as Auth, new Timers()).decide(alice, event, value);

  test("the most specific handler decides, and no other", async () => {
    const called: string[] = [];
    const rules = auth();
    for (const name of ["*", "*:read", "threads", "threads:read"] as const)
      rules.on(name, () => void called.push(name));
    await decide(rules, "threads:read");
    await decide(rules, "threads:create");
    await decide(rules, "store:put");
    expect(called).toEqual(["threads:read", "threads", "*"]);
    const some = auth().on("*:read", () => void called.push("by action"));
    await decide(some, "threads:read");
    expect(called.at(-1)).toBe("by action");
  });

  test("a handler gets the user, the permissions, and a value that it may change", async () => {
    const value: Record<string, unknown> = { metadata: undefined };
    let got: object = {};
    const rules = auth().on("threads:create", (call) => {
      got = { ...call, value: { ...call.value } };
      call.value.metadata = { owner: call.user.identity };
    });
    await decide(rules, "threads:create", value);
    expect(got).toEqual({
      event: "threads:create",
      resource: "threads",
      action: "create",
      value: { metadata: undefined },
      user: alice,
      permissions: ["p"],
    });
    expect(value).toEqual({ metadata: { owner: "a" } });
  });

  test.each<readonly [answer: unknown, what: string]>([
    [undefined, "all"],
    [null, "all"],
    [true, "all"],
    [Promise.resolve(true), "all"],
    [{ owner: "a" }, "some"],
  ])("%o allows %s", async (answer, what) => {
    const permission = await decide(auth().on("*", (() => answer) as never), "threads:read");
    expect(permission === undefined ? "all" : "some").toBe(what);
    if (what === "some")
      expect([{ owner: "a" }, { owner: "b" }].map((one) => permitsOf(permission)?.(one))).toEqual([
        true,
        false,
      ]);
  });

  test.each<readonly [answer: unknown, status: number, code: string]>([
    [false, 403, "auth.forbidden"],
    [Promise.resolve(false), 403, "auth.forbidden"],
    [0, 500, "auth.failed"],
    ["", 500, "auth.failed"],
    ["yes", 500, "auth.failed"],
    [["a"], 500, "auth.failed"],
    [{ owner: undefined }, 500, "auth.failed"],
  ])("%o: %i", async (answer, status, code) => {
    const refused = failure(decide(auth().on("*", (() => answer) as never), "threads:read"));
    expect(await refused).toMatchObject({ status, body: { code } });
  });

  test("what is thrown is a refusal, or a failure of which the client learns nothing", async () => {
    const throwing = (what: unknown) =>
      failure(
        decide(
          auth().on("*", () => {
            throw what;
          }),
          "threads:read",
        ),
      );
    expect(await throwing(new HTTPException(403, { message: "no" }))).toMatchObject({
      status: 403,
      body: { detail: "no" },
    });
    expect((await throwing(new Error("hunter2"))).body.detail).not.toContain("hunter2");
  });

  test("a name that objects have by themselves is no handler", async () => {
    expect(
      await decide({ "~handlerCache": { authenticate: () => "a", callbacks: {} } }, "threads:read"),
    ).toBeUndefined();
  });
});
