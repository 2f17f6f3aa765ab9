import { assign, createMachine, enqueueActions, sendTo } from "xstate";
import type { EventObject } from "../../actors/xstate.ts";
import type { ChartActorLogic, Statechart } from "../../actors/statechart-interpreter.ts";

/**
 * Runs a statechart with XState's own interpreter, so that tests can compare `interpretStatechart` with it. Passed as
 * `SystemDeps.interpret`, it runs a whole actor system.
 */
export function xstateInterpreter<C extends object, E extends EventObject, I, O>(chart: Statechart<C, E>) {
  const { config, guards, effects, actors, delays } = chart;
  const assigns = mapValues(chart.assigns, (change) => assign(change as never));
  const sends = mapValues(chart.sends, ({ to, event }) => sendTo(to, event as never));
  const stops = mapValues(chart.stops, (stop) =>
    enqueueActions((args, params) => {
      for (const id of stop(args as never, params as never)) args.enqueue.stopChild(id);
    }),
  );
  const machine = createMachine(config as object).provide({
    guards: guards as object,
    actions: { ...assigns, ...effects, ...sends, ...stops } as object,
    actors: actors ?? {},
    delays: delays ?? {},
  });
  return Object.assign(machine, {
    snapshotIn: (value: string, context: C) => machine.resolveState({ value, context }),
  }) as unknown as typeof machine & ChartActorLogic<C, E, I, O>;
}

function mapValues<T, U>(
  table: { readonly [name: string]: T },
  change: (value: T) => U,
): { [name: string]: U } {
  return Object.fromEntries(Object.entries(table).map(([name, value]) => [name, change(value)]));
}
