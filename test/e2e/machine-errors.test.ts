import { describe, expect, test } from "vitest";
import { assign, createMachine, fromPromise, sendTo, setup } from "xstate";
import { directory } from "./support/server.ts";
import { serveMachine } from "./support/served-machine.ts";

class ServiceError extends Error {
  readonly code = 42;
  readonly details = { retry: true };
  readonly connect = () => undefined;
  override readonly name = "ServiceError";
}

/** What `event.error` of a promise actor that throws is like for the machine. */
const seenOf = async (thrown: unknown) => {
  const machine = setup({
    actors: {
      failing: fromPromise(async () => {
        throw thrown;
      }),
    },
  }).createMachine({
    context: { seen: null as unknown },
    initial: "working",
    states: {
      working: {
        invoke: {
          src: "failing",
          onError: {
            target: "failed",
            actions: assign({
              seen: ({ event }) => {
                const error = event.error as Error & { code?: unknown };
                if (!(error instanceof Error))
                  return { value: error ?? null, isUndefined: error === undefined };
                const { name, message, cause } = error;
                return { name, message, members: { ...error }, cause };
              },
            }),
          },
        },
      },
      failed: { on: { AGAIN: "working" } },
    },
  });
  return (await (await serveMachine(machine)).wait({ input: {} }))["seen"];
};

describe("the error of a promise actor", () => {
  test.each([
    ["a text", "text"],
    ["a number", 7],
    ["null", null],
    ["an object", { type: "ServiceNotAvailable", message: "no", name: "me", list: [1] }],
    ["a list", [1, { a: 2 }]],
  ])("that is %s is what was thrown", async (_, thrown) => {
    expect(await seenOf(thrown)).toEqual({ value: thrown, isUndefined: false });
  });

  test("that is undefined is undefined", async () => {
    expect(await seenOf(undefined)).toEqual({ value: null, isUndefined: true });
  });

  test("keeps the name, the message and the members that can be stored", async () => {
    expect(await seenOf(new ServiceError("down"))).toEqual({
      name: "ServiceError",
      message: "down",
      members: { code: 42, details: { retry: true } },
    });
  });

  test("keeps its causes", async () => {
    const inner = Object.assign(new TypeError("inner"), { status: 503 });
    const middle = new Error("middle", { cause: inner });
    expect(await seenOf(new Error("outer", { cause: middle }))).toEqual({
      name: "Error",
      message: "outer",
      members: {},
      cause: {
        name: "Error",
        message: "middle",
        cause: { name: "TypeError", message: "inner", status: 503 },
      },
    });
    expect(await seenOf(new Error("outer", { cause: { reason: 5 } }))).toMatchObject({
      cause: { reason: 5 },
    });
  });

  test("of an endless chain of causes, and with much data, is stored in part", async () => {
    const error = Object.assign(new Error("round"), { big: "x".repeat(20_000), small: 1 });
    error.cause = error;
    const seen = (await seenOf(error)) as { readonly members: object };
    expect(seen.members).toEqual({ small: 1 });
    expect(JSON.stringify(seen).match(/round/g)).toHaveLength(6);
  });

  test("with a member that contains itself, such as the request of an HTTP client, is kept without it", async () => {
    const request: Record<string, unknown> = { url: "/" };
    request["response"] = { request };
    const error = Object.assign(new Error("gone"), { status: 410, request });
    expect(await seenOf(error)).toMatchObject({ message: "gone", members: { status: 410 } });
    expect(await seenOf(request)).toMatchObject({ name: "Error" });
  });

  test("with a member that XState would take for a reference to an actor is kept without it", async () => {
    const error = Object.assign(new Error("odd"), { xstate$$type: 1, id: "failing" });
    expect(await seenOf(error)).toEqual({
      name: "Error",
      message: "odd",
      members: { id: "failing" },
    });
    const reference = { toJSON: () => ({ xstate$$type: 1, id: "failing" }) };
    const withReference = Object.assign(new Error("odd"), { reference, code: 1 });
    expect(await seenOf(withReference)).toMatchObject({ message: "odd", members: { code: 1 } });
  });

  test("that throws wherever it is read is an Error", async () => {
    const fail = () => {
      throw new Error("unreadable");
    };
    const thrown = new Proxy({}, { get: fail, getPrototypeOf: fail, ownKeys: fail });
    expect(await seenOf(thrown)).toMatchObject({ name: "Error" });
  });

  test("that is neither an Error nor JSON becomes an Error", async () => {
    expect(await seenOf(new Map([[1, 2]]))).toMatchObject({ name: "Error", message: "{}" });
  });

  test("that throws where it is read is an Error too", async () => {
    const error = Object.defineProperty(new Error("odd"), "code", {
      enumerable: true,
      get: () => {
        throw new Error("unreadable");
      },
    });
    expect(await seenOf(error)).toMatchObject({ name: "Error", message: "odd", members: {} });
  });
});

describe("an Error in the context", () => {
  /** The form in which XState's documentation keeps the error of a promise. */
  const user = setup({
    actors: {
      load: fromPromise(async () => {
        throw new ServiceError("network");
      }),
    },
  }).createMachine({
    context: { error: null as unknown, kind: "" },
    initial: "loading",
    states: {
      loading: {
        invoke: {
          src: "load",
          onError: { target: "failure", actions: assign({ error: ({ event }) => event.error }) },
        },
      },
      failure: {
        on: { LOOK: { actions: assign({ kind: ({ context }) => typeof context.error }) }, RETRY: "loading" },
      },
    },
  });
  const stored = { name: "ServiceError", message: "network", code: 42, details: { retry: true } };

  test("is stored as an object, also after a restart", async () => {
    const data = await directory();
    const { app, thread, wait } = await serveMachine(user, data);
    expect(await wait({ input: {} })).toMatchObject({ __state__: "failure", error: stored });
    await app.close();
    const again = await serveMachine(user, data);
    expect(await again.wait({ command: { resume: { type: "LOOK" } } }, thread)).toMatchObject({
      error: stored,
      kind: "object",
    });
    expect(await again.wait({ command: { resume: { type: "RETRY" } } }, thread)).toMatchObject({
      __state__: "failure",
    });
  });

  test("of a child, in a list, and in the output are stored alike", async () => {
    const child = createMachine({
      context: { errors: [] as unknown[] },
      on: {
        FAIL: { actions: assign({ errors: () => [{ at: 1, error: new RangeError("far") }] }) },
      },
    });
    const machine = setup({ actors: { child } }).createMachine({
      context: {},
      output: () => ({ error: new Error("out") }),
      initial: "on",
      states: {
        on: {
          invoke: { src: "child", id: "child" },
          on: { FAIL: { actions: sendTo("child", { type: "FAIL" }) }, END: "off" },
        },
        off: { type: "final" },
      },
    });
    const { wait } = await serveMachine(machine);
    await wait({ input: {} });
    expect(await wait({ command: { resume: { type: "FAIL" } } })).toHaveProperty(
      "__snapshot__.rest.children.child.snapshot.context.errors",
      [{ at: 1, error: { name: "RangeError", message: "far" } }],
    );
    expect(await wait({ command: { resume: { type: "END" } } })).toMatchObject({
      __output__: { error: { name: "Error", message: "out" } },
    });
  });

  test("that contains itself is stored without that member, also beside a child", async () => {
    const round: Record<string, unknown> = {};
    round["self"] = round;
    const child = createMachine({
      on: {
        FAIL: {
          actions: assign(() => {
            throw Object.assign(new Error("round"), { round, code: 1 });
          }),
        },
      },
    });
    const machine = setup({ actors: { child } }).createMachine({
      context: { error: null as unknown },
      invoke: [
        {
          src: "child",
          id: "failing",
          onError: { actions: assign({ error: ({ event }) => event.error }) },
        },
        { src: "child", id: "other" },
      ],
      on: { FAIL: { actions: sendTo("failing", { type: "FAIL" }) } },
    });
    const { wait, send } = await serveMachine(machine);
    await wait({ input: {} });
    expect(await send("FAIL")).toMatchObject({ error: { name: "Error", message: "round", code: 1 } });
  });

  test("next to what cannot be stored does not hide it", async () => {
    const machine = createMachine({ context: { error: new Error("a"), at: new Map() } });
    await expect((await serveMachine(machine)).wait({ input: {} })).rejects.toThrow(
      "context.at cannot be stored: it is a Map",
    );
  });
});
