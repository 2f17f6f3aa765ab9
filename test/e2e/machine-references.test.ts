import { expect, test } from "vitest";
import { type AnyActorRef, assign, createMachine, fromPromise, sendTo, setup } from "xstate";
import { directory } from "./support/server.ts";
import { serveMachine } from "./support/served-machine.ts";

interface Spawning {
  spawn(src: string, options: object): AnyActorRef;
}

interface Holding {
  readonly context: { readonly ears: AnyActorRef };
}

const parentOf = ({ context }: { context: { parent: AnyActorRef } }) => context.parent;

/** Tells an actor that it has got by its input what it is told itself. */
const telling = setup({
  types: { context: {} as { parent: AnyActorRef }, input: {} as { parent: AnyActorRef } },
}).createMachine({
  context: ({ input }) => ({ parent: input.parent }),
  on: { TELL: { actions: sendTo(parentOf, { type: "TOLD" }) } },
});

const counting = {
  TELL: { actions: sendTo("child", { type: "TELL" }) },
  TOLD: { actions: assign({ told: ({ context }: { context: { told: number } }) => context.told + 1 }) },
};

test("a child keeps a reference to its parent, which it got by its input, also after a restart", async () => {
  const machine = setup({ actors: { telling } }).createMachine({
    context: { told: 0 },
    invoke: { src: "telling", id: "child", input: ({ self }) => ({ parent: self }) },
    on: counting as never,
  });
  const data = await directory();
  const { app, thread, wait, send } = await serveMachine(machine, data);
  await wait({ input: {} });
  expect(await send("TELL")).toMatchObject({ told: 1 });
  expect(await send("TELL")).toMatchObject({ told: 2 });
  await app.close();
  const again = await serveMachine(machine, data);
  expect(await again.send("TELL", thread)).toMatchObject({ told: 3 });
  expect(await again.send("TELL", thread)).toMatchObject({ told: 4 });
});

test("a child keeps a reference to its sibling, in a list, and not to one that was replaced by data", async () => {
  const ears = createMachine({
    context: { heard: 0 },
    on: { TOLD: { actions: assign({ heard: ({ context }) => context.heard + 1 }) } },
  });
  const tellingAll = setup({
    types: { context: {} as { all: readonly unknown[] }, input: {} as { all: readonly AnyActorRef[] } },
  }).createMachine({
    context: ({ input }) => ({ all: input.all }),
    on: {
      TELL: { actions: sendTo(({ context }) => context.all[0] as AnyActorRef, { type: "TOLD" }) },
      DROP: { actions: assign({ all: ["nobody"] }) },
    },
  });
  const machine = setup({ actors: { ears, tellingAll } }).createMachine({
    context: ({ spawn }: Spawning) => ({ ears: spawn("ears", { id: "ears" }) }),
    invoke: { src: "tellingAll", id: "child", input: ({ context }: Holding) => ({ all: [context.ears] }) },
    on: {
      TELL: { actions: sendTo("child", { type: "TELL" }) },
      DROP: { actions: sendTo("child", { type: "DROP" }) },
      NOTHING: { actions: () => undefined },
    },
  } as never);
  const { wait, send } = await serveMachine(machine);
  await wait({ input: {} });
  await send("NOTHING");
  await send("TELL");
  expect(await send("TELL")).toHaveProperty("__snapshot__.rest.children.ears.snapshot.context.heard", 2);
  await send("DROP");
  expect(await send("NOTHING")).toHaveProperty("__snapshot__.rest.children.child.snapshot.context.all", [
    "nobody",
  ]);
});

test("a child keeps a reference to its parent in an object that its context has in two places", async () => {
  const twice = setup({
    types: {
      context: {} as { all: readonly { parent: AnyActorRef }[] },
      input: {} as { parent: AnyActorRef },
    },
  }).createMachine({
    context: ({ input }) => ({ all: [input, input] }),
    on: {
      TELL: {
        actions: sendTo(({ context }) => (context.all[1] as { parent: AnyActorRef }).parent, {
          type: "TOLD",
        }),
      },
    },
  });
  const machine = setup({ actors: { twice } }).createMachine({
    context: { told: 0 },
    invoke: { src: "twice", id: "child", input: ({ self }) => ({ parent: self }) },
    on: counting as never,
  });
  const { wait, send } = await serveMachine(machine);
  await wait({ input: {} });
  expect(await send("TELL")).toMatchObject({ told: 1 });
  expect(await send("TELL")).toMatchObject({ told: 2 });
});

test("a promise actor whose input has an actor is refused, and the error names the place", async () => {
  const machine = setup({ actors: { work: fromPromise(async () => 1) } }).createMachine({
    initial: "idle",
    states: {
      idle: { on: { GO: "working" } },
      working: { invoke: { src: "work", id: "w", input: ({ self }) => ({ to: [{ parent: self }] }) } },
    },
  });
  const { client, thread, wait, send } = await serveMachine(machine);
  await wait({ input: {} });
  await expect(send("GO")).rejects.toThrow(
    'input of the promise actor "w" has an actor at input.to.0.parent',
  );
  expect((await client.threads.get(thread)).status).toBe("interrupted");
});
