import { assign, fromPromise, setup } from "xstate";

interface Order {
  readonly amount: number;
}

/**
 * An order as a statechart: a human approves or rejects it within three days; an actor charges for an
 * approved order. It is an ordinary XState machine and imports nothing from Heddle.
 */
export default setup({
  types: {
    context: {} as Order & { readonly receipt: string | null },
    input: {} as Partial<Order>,
    events: {} as { type: "APPROVE" } | { type: "REJECT" } | { type: "RETRY" },
  },
  delays: { threeDays: 3 * 24 * 60 * 60 * 1_000 },
  actors: {
    charge: fromPromise<string, Order>(async ({ input }) => {
      if (input.amount > 1_000) throw new RangeError("The card takes no more than 1000");
      return `Received: ${input.amount}`;
    }),
  },
}).createMachine({
  id: "order",
  initial: "reviewing",
  context: ({ input }) => ({ amount: input.amount ?? 20, receipt: null }),
  output: ({ context }) => context.receipt,
  states: {
    reviewing: {
      meta: { question: "Approve the order?" },
      on: { APPROVE: "charging", REJECT: "rejected" },
      after: { threeDays: "expired" },
    },
    charging: {
      invoke: {
        src: "charge",
        input: ({ context }) => ({ amount: context.amount }),
        onDone: { target: "paid", actions: assign({ receipt: ({ event }) => event.output }) },
        onError: "declined",
      },
    },
    declined: { on: { RETRY: "charging", REJECT: "rejected" } },
    paid: { type: "final" },
    rejected: { type: "final" },
    expired: { type: "final" },
  },
});
