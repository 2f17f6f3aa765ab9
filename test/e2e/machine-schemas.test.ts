import { describe, expect, test } from "vitest";
import { assign, fromPromise, setup } from "xstate";
import { z } from "zod";
import { heldCalls, latch } from "./support/latches.ts";
import { ShiftedTime } from "./support/shifted-time.ts";
import { serve, type Server } from "./support/server.ts";
import { dial } from "./support/sockets.ts";
import { get, newThread, post, postJson } from "./support/wire.ts";

type Json = Readonly<Record<string, unknown>>;

interface Answer {
  readonly status: number;
  readonly body: Json & { readonly run_id: string };
}

/** Whether a payment's reference is known is asked elsewhere, so its schema is asynchronous. */
const isKnown = async (reference: string) => {
  await Promise.resolve();
  return reference !== "unknown";
};

const schemas = {
  input: z.object({ amount: z.number().min(1), currency: z.string().default("EUR") }),
  events: {
    PAY: z.object({
      by: z.string().min(1),
      at: z.iso.date().transform((day) => new Date(day)),
      reference: z.string().refine(isKnown, "is not known").optional(),
    }),
    NOTE: {
      type: "object",
      properties: { text: { type: "string" }, lines: { type: "integer", default: 1 } },
      required: ["text"],
    },
    "order.*": z.object({ why: z.string() }),
  },
};

const payment = setup({
  types: {} as { context: Json; input: Json | undefined; events: Json & { type: string } },
  schemas,
  actors: { charge: fromPromise<string>(() => Promise.resolve("done")) },
}).createMachine({
  id: "payment",
  context: ({ input }) => ({ input: input ?? null, event: null, notes: [] }),
  initial: "open",
  on: {
    NOTE: { actions: assign({ notes: ({ context, event }) => [...(context["notes"] as object[]), event] }) },
  },
  states: {
    open: {
      on: {
        PAY: {
          target: "paying",
          guard: ({ event }) => event["by"] !== "nobody",
          actions: assign({ event: ({ event }) => event }),
        },
        CANCEL: "gone",
        "order.*": { actions: assign({ event: ({ event }) => event }) },
      },
    },
    paying: { invoke: { src: "charge", onDone: "paid" } },
    paid: { type: "final" },
    gone: { type: "final" },
  },
});

/** A schema that no library made. */
const standard = (validate: (value: unknown) => unknown) => ({
  "~standard": { version: 1, vendor: "test", validate },
});

/** A machine that notes each of its events. */
const machineOf = (events: object, input?: object) =>
  setup({
    types: {} as { context: Json; input: unknown; events: Json & { type: string } },
    schemas: { events, ...(input && { input }) },
  }).createMachine({
    context: ({ input: given }) => ({ input: given ?? null, event: null }),
    initial: "open",
    states: {
      open: {
        on: Object.fromEntries(
          Object.keys(events).map((type) => [
            type,
            { actions: assign({ event: ({ event }: { event: unknown }) => event }) },
          ]),
        ) as object,
      },
    },
  });

async function on(server: Pick<Server, "url">, assistant_id = "payment") {
  const thread = await newThread(server.url);
  const path = `${server.url}/threads/${thread}`;
  const answer = async (response: Response): Promise<Answer> => ({
    status: response.status,
    body: (await response.json()) as Answer["body"],
  });
  const json = async (of: string) => (await (await get(path + of)).json()) as Json;
  const run = async (body: object) => answer(await post(`${path}/runs/wait`, { assistant_id, ...body }));
  const send = async (event: unknown, headers?: Record<string, string>) =>
    answer(
      await fetch(`${path}/events`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: typeof event === "string" ? event : JSON.stringify(event),
      }),
    );
  const sent = async (event: unknown, headers?: Record<string, string>) => {
    const { status, body } = await send(event, headers);
    expect([status, JSON.stringify(body)]).toEqual([202, expect.anything()]);
    return json(`/runs/${body.run_id}/join`);
  };
  return { path, json, run, send, sent, begin: () => run({ input: { amount: 20 } }) };
}

describe("the input of a machine with a schema", () => {
  test("is described by it, and validated: 422 that names the field", async () => {
    const server = await serve({ graphs: { payment } });
    const { input_schema } = (await (await get(`${server.url}/assistants/payment/schemas`)).json()) as Json;
    expect(input_schema).toMatchObject({
      title: "payment input",
      type: "object",
      properties: { amount: { type: "number", minimum: 1 }, currency: { default: "EUR" } },
      required: ["amount"],
    });
    const { run, json } = await on(server);
    expect(await run({ input: { amount: 0 } })).toMatchObject({
      status: 422,
      body: { detail: expect.stringMatching(/^input\.amount: /) as unknown },
    });
    expect(await run({})).toMatchObject({
      status: 422,
      body: {
        detail: expect.stringContaining("input is required: the machine declares a schema for it") as unknown,
      },
    });
    expect(await json("/runs")).toEqual([]);
    // The machine gets what the schema returns: its default, and no member that it does not know.
    expect(await run({ input: { amount: 20, other: 1 } })).toMatchObject({
      status: 200,
      body: { input: { amount: 20, currency: "EUR" } },
    });
  });

  test("that is missing is what the schema has as its default", async () => {
    const id = z.string().default(() => crypto.randomUUID());
    const preset = machineOf({ GO: z.object({}) }, z.object({ a: z.string(), id }).prefault({ a: "preset" }));
    const { run, sent } = await on(await serve({ graphs: { payment: preset } }));
    const { body } = await run({});
    expect(body).toMatchObject({ input: { a: "preset" } });
    expect(await sent({ type: "GO" })).toMatchObject({ input: body["input"] });
    // A later run without an input goes on, and begins nothing anew.
    expect((await run({})).body).toMatchObject({ input: body["input"], event: { type: "GO" } });
  });

  test("is validated for runs without a thread, in batches and for crons too", async () => {
    const { url } = await serve({ graphs: { payment } });
    const bad = { assistant_id: "payment", input: { amount: "1" } };
    const good = { assistant_id: "payment", input: { amount: 1 } };
    for (const [path, body, at] of [
      ["runs/wait", bad, "input.amount: "],
      ["runs/batch", [good, bad], "input.amount: "],
      ["runs/crons", { ...bad, schedule: "0 0 1 1 *" }, "input.amount: "],
    ] as const) {
      const response = await post(`${url}/${path}`, body);
      expect([path, response.status, await response.text()]).toEqual([
        path,
        422,
        expect.stringContaining(at),
      ]);
    }
    expect(await postJson(`${url}/runs/wait`, good)).toMatchObject({ input: { amount: 1, currency: "EUR" } });
  });
});

describe("a run of a machine whose schemas transform", () => {
  const transforming = machineOf(
    { GO: z.strictObject({ a: z.string().transform(Number) }) },
    z.strictObject({ n: z.string().transform(Number) }),
  );

  test("is stored as it was sent, and a copy of it does the same", async () => {
    const { run, sent, json } = await on(await serve({ graphs: { payment: transforming } }));
    const stored = async (of: number) => {
      const list = (await json("/runs")) as unknown as readonly { kwargs: Json }[];
      return list.at(of)?.kwargs ?? {};
    };
    expect((await run({ input: { n: "5" } })).body).toMatchObject({ input: { n: 5 } });
    const first = await stored(0);
    expect(first).toMatchObject({ input: { n: "5" }, parsed: { input: { n: 5 } } });
    expect((await run({ input: first["input"] })).body).toMatchObject({ input: { n: 5 } });
    const event = { type: "GO", a: "7" };
    expect(await sent(event)).toMatchObject({ event: { type: "GO", a: 7 } });
    const answer = await stored(0);
    expect(answer).toMatchObject({ command: { resume: event }, parsed: { command: { resume: { a: 7 } } } });
    expect((await run({ command: answer["command"] })).body).toMatchObject({ event: { type: "GO", a: 7 } });
    const [{ id }] = (await json("/interrupts")) as unknown as [{ id: string }];
    expect((await run({ command: { resume: { [id]: { ...event, a: "8" } } } })).body).toMatchObject({
      event: { a: 8 },
    });
  });

  test("is stored once if they change nothing", async () => {
    const { begin, run, sent, json } = await on(await serve({ graphs: { payment } }));
    await begin();
    await run({ input: { amount: 1, currency: "CHF" } });
    await sent({ type: "NOTE", text: "a", lines: 2 });
    const runs = (await json("/runs")) as unknown as readonly { kwargs: Json }[];
    expect(runs.map(({ kwargs }) => "parsed" in kwargs)).toEqual([false, false, true]);
  });
});

describe("the events of a machine with schemas", () => {
  const event = (type: string, properties: object, required: readonly string[]) => ({
    type: "object",
    properties: { ...properties, type: { const: type } },
    required: ["type", ...required],
  });

  test("are described, each with its data, where the machine waits", async () => {
    const { begin, json } = await on(await serve({ graphs: { payment } }));
    await begin();
    const { events } = (await json("/events/possible")) as { events: { type: string; schema: Json }[] };
    expect(events.map(({ type }) => type)).toEqual(["NOTE", "PAY", "CANCEL", "order.*"]);
    const [note, pay, cancel, order] = events.map(({ schema }) => schema);
    expect(note).toEqual(
      event("NOTE", { text: { type: "string" }, lines: { type: "integer", default: 1 } }, ["text"]),
    );
    expect(pay).toMatchObject({
      properties: { type: { const: "PAY" }, by: { type: "string", minLength: 1 }, at: { type: "string" } },
      required: ["type", "by", "at"],
    });
    expect(cancel).toEqual(event("CANCEL", {}, []));
    expect(order).toMatchObject({ properties: { type: { type: "string" }, why: { type: "string" } } });
    const [{ response_schema, value }] = (await json("/interrupts")) as unknown as [
      { response_schema: Json; value: Json },
    ];
    expect(value["events"]).toEqual(["NOTE", "PAY", "CANCEL", "order.*"]);
    expect(response_schema).toMatchObject({ required: ["type"], anyOf: [note, pay, cancel, order] });
  });

  test("are validated: 422 that names the field, also for an answer; and the machine gets what the schema returns", async () => {
    const { begin, json, send, sent, run } = await on(await serve({ graphs: { payment } }));
    await begin();
    const refused = async (given: Promise<Answer>) => {
      const { status, body } = await given;
      return [status, body["detail"]];
    };
    expect(await refused(send({ type: "PAY", by: "", at: "2026-11-27" }))).toEqual([
      422,
      expect.stringMatching(/^by: /),
    ]);
    expect(await refused(send({ type: "NOTE" }))).toEqual([422, "text: is required"]);
    expect(await refused(send({ type: "NOTE", text: "a", lines: 1.5 }))).toEqual([
      422,
      "lines: must be an integer",
    ]);
    expect(await refused(send({ type: "order.lost" }))).toEqual([422, expect.stringMatching(/^why: /)]);
    expect(await refused(run({ command: { resume: { type: "PAY", by: "Ada", at: "x" } } }))).toEqual([
      422,
      expect.stringMatching(/^command\.resume\.at: /),
    ]);
    const [{ id }] = (await json("/interrupts")) as unknown as [{ id: string }];
    expect(await refused(run({ command: { resume: { [id]: { type: "NOTE" } } } }))).toEqual([
      422,
      `command.resume.${id}.text: is required`,
    ]);
    expect(await sent({ type: "NOTE", text: "first" })).toMatchObject({
      notes: [{ type: "NOTE", text: "first", lines: 1 }],
    });
    // A guard sees what the schema returned. The date is stored as JSON, and what the schema does not know is left out.
    const paid = await run({ command: { resume: { type: "PAY", by: "Ada", at: "2026-11-27", other: 1 } } });
    expect(paid.body).toMatchObject({
      __state__: "paid",
      event: { type: "PAY", by: "Ada", at: "2026-11-27T00:00:00.000Z" },
    });
    expect(paid.body["event"]).not.toHaveProperty("other");
    // Refused events have left no run behind.
    expect(((await json("/runs")) as unknown as readonly Json[]).map(({ status }) => status)).toEqual(
      Array.from({ length: 3 }, () => "success"),
    );
  });

  test("are validated on the thread's socket too", async () => {
    const { begin, path } = await on(await serve({ graphs: { payment } }));
    await begin();
    const socket = await dial(`${path}/stream`);
    expect(await socket.ask({ id: 1, type: "event", event: { type: "NOTE" } })).toMatchObject({
      type: "error",
      detail: "text: is required",
    });
    expect(await socket.ask({ id: 2, type: "event", event: { type: "NOTE", text: "x" } })).toMatchObject({
      type: "ack",
    });
  });

  test("may have an asynchronous schema", async () => {
    const { begin, send, sent } = await on(await serve({ graphs: { payment } }));
    await begin();
    const pay = { type: "PAY", by: "Ada", at: "2026-11-27" };
    expect(await send({ ...pay, reference: "unknown" })).toMatchObject({
      status: 422,
      body: { detail: "reference: is not known" },
    });
    expect(await sent({ ...pay, reference: "r1" })).toMatchObject({ __state__: "paid" });
  });

  test("are described and validated while an actor works", async () => {
    const { work, calls, waiting } = heldCalls<string>();
    const graphs = { payment: payment.provide({ actors: { charge: fromPromise<string>(work) } }) };
    const { begin, json, send, sent } = await on(await serve({ graphs }));
    await begin();
    const { body } = await send({ type: "PAY", by: "Ada", at: "2026-11-27" });
    await calls(1);
    expect(await json("/events/possible")).toMatchObject({
      state: "paying",
      events: [{ type: "NOTE", schema: { required: ["type", "text"] } }],
    });
    expect(await send({ type: "NOTE" })).toMatchObject({
      status: 422,
      body: { detail: "text: is required" },
    });
    await sent({ type: "NOTE", text: "while it works" });
    waiting[0]?.open("done");
    expect(await json(`/runs/${body.run_id}/join`)).toMatchObject({
      __state__: "paid",
      notes: [{ text: "while it works", lines: 1 }],
    });
  });

  test("that the machine does not handle are refused as without schemas, and hostile ones too", async () => {
    const { begin, send, sent } = await on(await serve({ graphs: { payment } }));
    await begin();
    expect(await send({ type: "__proto__" })).toMatchObject({
      status: 422,
      body: { detail: expect.stringMatching(/^type is "__proto__"; the machine can take NOTE, /) as unknown },
    });
    const reserved = {
      status: 422,
      body: { detail: "event.__proto__ cannot be stored: the key is reserved" },
    };
    expect(await send('{"type":"order.lost","why":"x","__proto__":{"polluted":true}}')).toMatchObject(
      reserved,
    );
    const { event: taken } = await sent({ type: "order.lost", why: "x", constructor: 1, toString: 2 });
    expect(taken).toEqual({ type: "order.lost", why: "x" });
    expect(({} as Json)["polluted"]).toBeUndefined();
  });

  test("with many wrong members are refused with some of them", async () => {
    const list = z.object({ all: z.array(z.number()) });
    const many = setup({ schemas: { events: { GO: list } } }).createMachine({
      initial: "a",
      states: { a: { on: { GO: "b" } }, b: {} },
    });
    const { run, send } = await on(await serve({ graphs: { many } }), "many");
    await run({ input: {} });
    const { status, body } = await send({ type: "GO", all: Array.from({ length: 9_000 }, () => "x") });
    expect([status, (body["errors"] as readonly object[]).length]).toEqual([422, 20]);
  });

  test("whose schema fails itself are refused with its error, and nothing is stored", async () => {
    const broken = z.object({}).transform(() => {
      throw new RangeError("the rates are not loaded");
    });
    const failing = setup({ schemas: { events: { GO: broken } } }).createMachine({
      initial: "a",
      states: { a: { on: { GO: "b" } }, b: {} },
    });
    const { run, send, json } = await on(await serve({ graphs: { failing } }), "failing");
    await run({ input: {} });
    expect(await send({ type: "GO" })).toMatchObject({
      status: 422,
      body: { detail: expect.stringMatching(/: its schema failed: the rates are not loaded$/) as unknown },
    });
    expect(await json("/runs")).toHaveLength(1);
  });

  test("that answer a question while it is validated are refused when another is asked meanwhile", async () => {
    const [called, valid] = [latch(), latch()];
    const slow = standard(async (value) => {
      called.pass();
      await valid.passed;
      return { value };
    });
    const graphs = { payment: machineOf({ SLOW: slow, OK: z.object({}) }) };
    const { begin, run, sent, json } = await on(await serve({ graphs }));
    await begin();
    const answer = run({ command: { resume: { type: "SLOW" } } });
    await called.passed;
    await sent({ type: "OK" });
    valid.pass();
    expect(await answer).toMatchObject({ status: 409, body: { code: "resume.conflict" } });
    expect(await run({ command: { resume: { type: "SLOW" } } })).toMatchObject({ status: 200 });
    // An event is for the state in which it is taken.
    expect(await sent({ type: "SLOW" })).toMatchObject({ event: { type: "SLOW" } });
    expect(await json("/runs")).toHaveLength(4);
  });

  test("whose schema never answers are refused after 10 s, and hold neither their key nor their socket", async () => {
    let called = latch();
    const never = standard(() => {
      called.pass();
      return new Promise(() => {});
    });
    const time = new ShiftedTime(0, 10_000);
    const { clock, scheduler } = time;
    const graphs = { payment: machineOf({ GO: never, OK: z.object({}) }) };
    const { begin, send, sent, path } = await on(await serve({ graphs, clock, scheduler }));
    await begin();
    const refused = async <T>(ask: () => Promise<T>) => {
      called = latch();
      const asked = ask();
      await called.passed;
      time.advance(10_000);
      return asked;
    };
    const detail = 'event "GO": its schema failed: it did not answer in 10 s';
    const key = { "idempotency-key": "once" };
    // The second request has the key of the first: it is called again, and so the key was free.
    for (let request = 0; request < 2; request++)
      expect(await refused(() => send({ type: "GO" }, key))).toMatchObject({
        status: 422,
        body: { code: "graph.invalid", detail },
      });
    const socket = await dial(`${path}/stream`);
    const event = { type: "GO" };
    expect(await refused(() => socket.ask({ id: 1, type: "event", event }))).toMatchObject({
      type: "error",
      detail,
    });
    expect(await socket.ask({ id: 2, type: "event", event: { type: "OK" } })).toMatchObject({ type: "ack" });
    expect(await sent({ type: "OK" }, key)).toMatchObject({ event: { type: "OK" } });
  });

  test("are refused by a schema whose issues lack what issues must have", async () => {
    const odd = machineOf({
      NAMELESS: standard(() => ({ issues: [{ path: ["q"] }] })),
      NONE: standard(() => ({ issues: [] })),
      NULL: standard(() => ({ issues: [null] })),
      TEXT: standard(() => ({ issues: "no" })),
      NOTHING: standard(() => undefined),
    });
    const { begin, send } = await on(await serve({ graphs: { payment: odd } }));
    await begin();
    const refused = async (type: string) => {
      const { status, body } = await send({ type });
      return [status, body["code"], body["detail"]];
    };
    expect(await refused("NAMELESS")).toEqual([422, "validation.failed", "q: is not valid"]);
    expect(await refused("NONE")).toEqual([
      422,
      "validation.failed",
      expect.stringMatching(/ is not valid$/),
    ]);
    for (const type of ["NULL", "TEXT", "NOTHING"])
      expect([type, ...(await refused(type))]).toEqual([
        type,
        422,
        "graph.invalid",
        expect.stringMatching(new RegExp(`^event "${type}": its schema failed: `)),
      ]);
  });

  test("that are wrong as a whole are refused as such: their type is not blamed", async () => {
    const number = { type: "number" };
    const whole = machineOf({
      RANGE: z
        .object({ from: z.number(), to: z.number() })
        .refine(({ from, to }) => from < to, "from must be less than to"),
      STRICT: z.strictObject({ a: z.number() }),
      CLOSED: { type: "object", properties: { a: number }, unevaluatedProperties: false },
      PAIR: { type: "object", dependentRequired: { a: ["b"] } },
      NONE: { type: "object", not: {} },
      TYPED: z.object({}).refine(() => false, { path: ["type"], message: "is out of date" }),
    });
    const { begin, send } = await on(await serve({ graphs: { payment: whole } }));
    await begin();
    const refused = async (event: object) => {
      const { status, body } = await send(event);
      const [{ at }] = body["errors"] as [{ at: string }];
      return [status, at, body["detail"]];
    };
    const expected: readonly (readonly [object, string, string])[] = [
      [{ type: "RANGE", from: 2, to: 1 }, "event", "event: from must be less than to"],
      [{ type: "STRICT", a: 1, b: 1 }, "event", 'event: Unrecognized key: "b"'],
      [{ type: "CLOSED", a: 1, b: 1 }, "b", "b: is not allowed"],
      [{ type: "PAIR", a: 1 }, "event", "event: must have properties b when property a is present"],
      [{ type: "NONE" }, "event", "event: must not be valid"],
      [{ type: "TYPED" }, "type", "type: is out of date"],
    ];
    for (const [event, at, detail] of expected) expect(await refused(event)).toEqual([422, at, detail]);
  });

  test("of which a schema makes what cannot be stored are refused, with the member", async () => {
    const unstorable = machineOf({ BIG: z.object({ a: z.string().transform(BigInt) }) });
    const { begin, send, run } = await on(await serve({ graphs: { payment: unstorable } }));
    await begin();
    const message = "cannot be stored: it is a bigint";
    expect(await send({ type: "BIG", a: "1" })).toMatchObject({
      status: 422,
      body: { code: "value.unstorable", detail: `a ${message}`, errors: [{ at: "a", message }] },
    });
    expect(await run({ command: { resume: { type: "BIG", a: "1" } } })).toMatchObject({
      status: 422,
      body: { detail: `command.resume.a ${message}`, errors: [{ at: "command.resume.a", message }] },
    });
  });

  test("are for the version of the thread's machine", async () => {
    const version = (name: string, schema: object) =>
      setup({
        types: {} as { context: Json; events: Json & { type: string } },
        schemas: { events: { GO: schema } },
      }).createMachine({
        version: name,
        context: { event: null },
        initial: "a",
        states: { a: { on: { GO: { actions: assign({ event: ({ event: taken }) => taken }) } } } },
      });
    const [first, second] = [
      version("1", z.object({ a: z.string() })),
      version("2", z.object({ a: z.number() })),
    ];
    const server = await serve({ graphs: { versions: { versions: [first, second] } as never } });
    const { run, send, sent, path } = await on(server, "versions");
    await run({ input: {} });
    expect(await send({ type: "GO", a: "x" })).toMatchObject({ status: 422 });
    expect(await sent({ type: "GO", a: 1 })).toMatchObject({ event: { a: 1 } });
    await postJson(`${path}/state`, { values: { __version__: "1" } });
    await run({ input: null });
    expect(await send({ type: "GO", a: 1 })).toMatchObject({ status: 422 });
    expect(await sent({ type: "GO", a: "x" })).toMatchObject({ event: { a: "x" } });
  });

  test("whose schemas are too long for a question are asked for without forms", async () => {
    const long = setup({
      schemas: { events: { GO: z.object({ a: z.string().describe("x".repeat(40_000)) }) } },
    }).createMachine({
      initial: "a",
      states: { a: { on: { GO: "b" } }, b: { type: "final" } },
    });
    const { run, send, sent, json } = await on(await serve({ graphs: { long } }), "long");
    await run({ input: {} });
    expect(await json("/events/possible")).toMatchObject({
      events: [{ type: "GO", schema: { type: "object", properties: { type: { const: "GO" } } } }],
    });
    expect(await send({ type: "GO" })).toMatchObject({ status: 422 });
    expect(await sent({ type: "GO", a: "x" })).toMatchObject({ __state__: "b" });
  });
});

test("a machine whose schema is broken is refused when it is loaded, with the path", async () => {
  const broken = setup({ schemas: { events: { GO: { properties: { a: { type: "txt" } } } } } }).createMachine(
    { id: "m" },
  );
  await expect(serve({ graphs: { broken } })).rejects.toThrow(
    /the machine "m" declares schemas that cannot be used: schemas\.events\.GO\.properties\.a\.type is "txt"/,
  );
});
