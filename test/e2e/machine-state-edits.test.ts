import { describe, expect, test } from "vitest";
import { assign, createMachine, setup } from "xstate";
import { lines } from "./support/clients.ts";
import { serve } from "./support/server.ts";
import { get, newThread, post } from "./support/wire.ts";

const connect = (lines[0] as (typeof lines)[number])[1];

const order = setup({ types: { context: {} as { amount: number } } }).createMachine({
  id: "order",
  context: { amount: 1 },
  initial: "reviewing",
  states: {
    // The timer makes the machine wait without a question being computed.
    reviewing: {
      on: { APPROVE: "charging", ADD: { actions: assign({ amount: ({ context }) => context.amount + 1 }) } },
      after: { [60 * 60 * 1_000]: "lost" },
    },
    charging: {
      initial: "card",
      states: { card: { on: { INVOICE: "invoice" } }, invoice: {} },
      on: { PAID: "paid" },
    },
    lost: { type: "final" },
    paid: { type: "final" },
  },
});

const player = createMachine({
  id: "player",
  type: "parallel",
  states: {
    track: { initial: "stopped", states: { stopped: { on: { PLAY: "playing" } }, playing: {} } },
    volume: { initial: "normal", states: { normal: { on: { MUTE: "muted" } }, muted: {} } },
  },
});

async function waiting(name: "order" | "player" = "order") {
  const { url } = await serve({ graphs: { order, player } });
  const thread = await newThread(url);
  await post(`${url}/threads/${thread}/runs/wait`, { assistant_id: name, input: {} });
  const edit = async (body: object) => {
    const response = await post(`${url}/threads/${thread}/state`, body);
    return {
      status: response.status,
      body: (await response.json()) as { detail?: string; fields?: unknown },
    };
  };
  const values = async () =>
    ((await (await get(`${url}/threads/${thread}/state`)).json()) as { values: Record<string, unknown> })
      .values;
  const goOn = (payload: object) => connect(url).runs.wait(thread, name, payload as never);
  return { url, thread, edit, values, goOn };
}

describe("an update of a machine's state", () => {
  test.each([
    ["nowhere", /"nowhere", which is no state of the machine; it has reviewing, charging, lost, paid/],
    [5, /must be the name of a state/],
    [null, /must be the name of a state/],
    [["reviewing"], /must be the name of a state/],
    [{}, /exactly one state of the machine/],
    [{ reviewing: {}, paid: {} }, /exactly one state of the machine/],
    [{ charging: "cash" }, /"cash", which is no state of "charging"; it has card, invoice/],
    [{ charging: {} }, /exactly one state of "charging"/],
    [{ reviewing: "inner" }, /no state of "reviewing"; it has none/],
    ["constructor", /no state of the machine/],
  ])("refuses __state__ %j, and the thread stays as it is", async (state, why) => {
    const { edit, goOn, values } = await waiting();
    const { status, body } = await edit({ values: { __state__: state } });
    expect([status, body.detail]).toEqual([422, expect.stringMatching(/^values\.__state__ /)]);
    expect(body.detail).toMatch(why);
    await goOn({ command: { resume: { type: "ADD" } } });
    expect(await values()).toMatchObject({ __state__: "reviewing", amount: 2 });
  });

  test.each([
    "x",
    5,
    null,
    {},
    [5],
    [null],
    [{}],
    [{ event: "APPROVE" }],
    [{ event: { by: "Ada" } }],
    [{ event: { type: "xstate.stop" } }],
    [{ timer: { id: 1 } }],
    [{ actor: "a", start: 1, result: { output: 1 } }],
    [{ actor: ["a"], start: 1, result: {} }],
  ])("refuses __events__ %j, and the thread stays as it is", async (events) => {
    const { edit, goOn, values } = await waiting();
    const { status, body } = await edit({ values: { __events__: events } });
    expect([status, body.detail]).toEqual([422, expect.stringMatching(/^values\.__events__ must be a list/)]);
    await goOn({ command: { resume: { type: "ADD" } } });
    expect(await values()).toMatchObject({ __state__: "reviewing", amount: 2 });
  });

  test("refuses more than 1,000 __events__, also of several updates together", async () => {
    const { edit, goOn, values } = await waiting();
    const added = (count: number) =>
      edit({ values: { __events__: Array.from({ length: count }, () => ({ event: { type: "ADD" } })) } });
    const refusal = {
      status: 422,
      body: { detail: expect.stringMatching(/^values\.__events__ must hold at most 1000/) },
    };
    expect(await added(1_001)).toMatchObject(refusal);
    expect(await added(400)).toMatchObject({ status: 200 });
    expect(await added(600)).toMatchObject({ status: 200 });
    expect(await added(1)).toMatchObject(refusal);
    await goOn({ input: null });
    expect(await values()).toMatchObject({ __state__: "reviewing", amount: 1_001 });
    expect(await added(1)).toMatchObject({ status: 200 });
  });

  test("by the command of a run is checked alike", async () => {
    const { url, thread, values } = await waiting();
    for (const update of [{ __state__: "nowhere" }, { __events__: [5] }]) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const response = await post(`${url}/threads/${thread}/runs/wait`, {
        assistant_id: "order",
        command: { update },
      });
      expect(response.status).toBe(422);
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      expect(await response.text()).toContain(`command.update.${Object.keys(update)[0]}`);
    }
    expect(await values()).toMatchObject({ __state__: "reviewing" });
  });

  test("with events, which the next run takes", async () => {
    const { edit, goOn, values } = await waiting();
    expect(await edit({ values: { __events__: [{ event: { type: "ADD" } }] } })).toMatchObject({
      status: 200,
    });
    await goOn({ input: null });
    expect(await values()).toMatchObject({ __state__: "reviewing", amount: 2 });
  });
});

describe("as_node may be a state of the machine", () => {
  test.each([
    ["charging.invoice", { charging: "invoice" }],
    ["charging", { charging: "card" }],
    ["order.charging.invoice", { charging: "invoice" }],
    ["#order.charging.invoice", { charging: "invoice" }],
  ])("%s: the machine goes on from there, with the values", async (as_node, state) => {
    const { edit, goOn, values } = await waiting();
    expect(await edit({ values: { amount: 7 }, as_node })).toMatchObject({ status: 200 });
    expect(await values()).toMatchObject({ __state__: state, amount: 7 });
    await goOn({ input: null });
    await goOn({ command: { resume: { type: "PAID" } } });
    expect(await values()).toMatchObject({ __state__: "paid", amount: 7 });
  });

  test("without values", async () => {
    const { edit, values } = await waiting();
    expect(await edit({ values: null, as_node: "charging" })).toMatchObject({ status: 200 });
    expect(await values()).toMatchObject({ __state__: { charging: "card" }, amount: 1 });
  });

  test("other regions of a parallel state stay as they are", async () => {
    const { edit, goOn, values } = await waiting("player");
    await goOn({ command: { resume: { type: "MUTE" } } });
    expect(await edit({ as_node: "track.playing" })).toMatchObject({ status: 200 });
    expect(await values()).toMatchObject({ __state__: { track: "playing", volume: "muted" } });
  });

  test("a name that is neither is refused with those that are accepted, and so is a second state", async () => {
    const { edit } = await waiting();
    const unknown = await edit({ values: {}, as_node: "shipping" });
    expect([unknown.status, unknown.body.detail]).toEqual([
      422,
      expect.stringMatching(
        /^as_node names "shipping", which is no node and no state; the nodes are xstate\.transition, xstate\.wait, xstate\.actions, and the states reviewing, charging, charging\.card/,
      ),
    ]);
    const twice = await edit({ values: { __state__: "paid" }, as_node: "charging" });
    expect([twice.status, twice.body.detail]).toEqual([422, expect.stringMatching(/^values\.__state__ /)]);
  });
});
