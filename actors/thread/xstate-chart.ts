import { assign, sendTo, setup } from "../xstate.ts";
import type { ThreadEvent } from "../messages.ts";
import type { RunMachine } from "../run/run-machine.ts";
import {
  threadAssigns,
  threadGuards,
  runMessages,
  threadChart,
  type ThreadActorEvent,
  type ThreadContext,
  type ThreadEffects,
  type ThreadInput,
} from "./thread-chart.ts";

/** The thread's statechart in XState's form. The inspector draws it, and a test holds `thread-machine.ts` to it. */
export function xstateThreadChart(effects: ThreadEffects, run: RunMachine) {
  const asked = <P>(guard: (context: ThreadContext, event: ThreadActorEvent, params: P) => boolean) => {
    return ({ context, event }: { context: ThreadContext; event: ThreadEvent }, params: P) =>
      guard(context, event, params);
  };
  const changed = <P>(
    change: (context: ThreadContext, event: ThreadActorEvent, params: P) => Partial<ThreadContext>,
  ) =>
    assign<ThreadContext, ThreadEvent, P, ThreadEvent, never>(({ context, event }, params) =>
      change(context, event, params),
    );
  const { pending } = threadChart.states;
  return setup({
    types: { context: {} as ThreadContext, input: {} as ThreadInput, events: {} as ThreadEvent },
    actors: { run },
    guards: {
      hasActive: asked<undefined>(threadGuards.hasActive),
      hasNext: asked<undefined>(threadGuards.hasNext),
      isStopping: asked<undefined>(threadGuards.isStopping),
      isActive: asked<undefined>(threadGuards.isActive),
      makesWay: asked<undefined>(threadGuards.makesWay),
      leavesIn: asked(threadGuards.leavesIn),
      startsNow: asked<undefined>(threadGuards.startsNow),
      starts: asked<undefined>(threadGuards.starts),
      queues: asked<undefined>(threadGuards.queues),
      supersedes: asked<undefined>(threadGuards.supersedes),
      endedIn: asked(threadGuards.endedIn),
      updatedTo: asked(threadGuards.updatedTo),
      restsIn: asked(threadGuards.restsIn),
    },
    actions: {
      ask: ({ context }) => {
        if (context.active !== null) effects.ask(context.thread, context.active);
      },
      start: ({ context }) => {
        if (context.active !== null) effects.start(context.thread, context.active);
      },
      stopRun: sendTo("run", ({ context }) => runMessages.stopRun(context)),
      beginRun: sendTo("run", runMessages.beginRun),
      enqueue: changed<undefined>(threadAssigns.enqueue),
      takeOver: changed<undefined>(threadAssigns.takeOver),
      stopForNewRun: changed<undefined>(threadAssigns.stopForNewRun),
      stopAsAsked: changed<undefined>(threadAssigns.stopAsAsked),
      withdraw: changed<undefined>(threadAssigns.withdraw),
      takeNext: changed<undefined>(threadAssigns.takeNext),
      comeToRest: changed(threadAssigns.comeToRest),
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
