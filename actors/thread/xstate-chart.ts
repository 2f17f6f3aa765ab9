import { assign, sendTo, setup } from "../xstate.ts";
import type { ThreadEvent } from "../messages.ts";
import type { RunMachine } from "../run/run-machine.ts";
import {
  assigns,
  guards,
  tells,
  threadChart,
  type Heard,
  type ThreadContext,
  type ThreadEffects,
  type ThreadInput,
} from "./thread-chart.ts";

/** The thread's statechart in XState's form. The inspector draws it, and a test holds `thread-machine.ts` to it. */
export function drawnThread(effects: ThreadEffects, run: RunMachine) {
  const asked = <P>(guard: (context: ThreadContext, event: Heard, params: P) => boolean) => {
    return ({ context, event }: { context: ThreadContext; event: ThreadEvent }, params: P) =>
      guard(context, event, params);
  };
  const changed = <P>(change: (context: ThreadContext, event: Heard, params: P) => Partial<ThreadContext>) =>
    assign<ThreadContext, ThreadEvent, P, ThreadEvent, never>(({ context, event }, params) =>
      change(context, event, params),
    );
  const { pending } = threadChart.states;
  return setup({
    types: { context: {} as ThreadContext, input: {} as ThreadInput, events: {} as ThreadEvent },
    actors: { run },
    guards: {
      hasActive: asked<undefined>(guards.hasActive),
      hasNext: asked<undefined>(guards.hasNext),
      isStopping: asked<undefined>(guards.isStopping),
      isActive: asked<undefined>(guards.isActive),
      makesWay: asked<undefined>(guards.makesWay),
      leavesIn: asked(guards.leavesIn),
      startsNow: asked<undefined>(guards.startsNow),
      starts: asked<undefined>(guards.starts),
      queues: asked<undefined>(guards.queues),
      supersedes: asked<undefined>(guards.supersedes),
      endedIn: asked(guards.endedIn),
      updatedTo: asked(guards.updatedTo),
      restsIn: asked(guards.restsIn),
    },
    actions: {
      ask: ({ context }) => {
        if (context.active !== null) effects.ask(context.thread, context.active);
      },
      start: ({ context }) => {
        if (context.active !== null) effects.start(context.thread, context.active);
      },
      stopRun: sendTo("run", ({ context }) => tells.stopRun(context)),
      beginRun: sendTo("run", tells.beginRun),
      enqueue: changed<undefined>(assigns.enqueue),
      takeOver: changed<undefined>(assigns.takeOver),
      stopForNewRun: changed<undefined>(assigns.stopForNewRun),
      stopAsAsked: changed<undefined>(assigns.stopAsAsked),
      withdraw: changed<undefined>(assigns.withdraw),
      takeNext: changed<undefined>(assigns.takeNext),
      comeToRest: changed(assigns.comeToRest),
    },
  }).createMachine({
    ...threadChart,
    context: ({ input }) => ({ ...input, stop: null }),
    states: {
      ...threadChart.states,
      pending: {
        ...pending,
        invoke: {
          ...pending.invoke,
          input: ({ context }) => ({ thread: context.thread, run: context.active ?? "", within: null }),
        },
      },
    },
  });
}
