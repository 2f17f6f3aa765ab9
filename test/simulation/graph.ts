import { graph, list, messages, value } from "../../src/index.ts";

/** The behaviour of a simulated run. */
export interface Plan {
  readonly run: string;
  readonly tokens: number;
  readonly ask: boolean;
  readonly fails: boolean;
  /** True: the node ignores its abort signal. */
  readonly deaf: boolean;
}

/** Sleeps in simulated time; rejects when the signal fires. */
export type Sleep = (signal: AbortSignal | null) => Promise<void>;

const nothing: Plan = { run: "", tokens: 0, ask: false, fails: false, deaf: false };

/**
 * A graph with sequential steps, parallel steps and a join, a subgraph, tokens, custom events, a journaled step, and a
 * question to a human.
 */
export function simulated(sleep: Sleep) {
  const close = graph({
    state: { log: list<string>(), plan: value<Plan>(nothing) },
    // The log is not an input, so that only additions are returned.
    input: ["plan"],
    nodes: {
      ask: async ({ plan }, ctx) => {
        const answer = await ctx.interrupt({ for: plan.run });
        return { log: [`${plan.run} heard ${JSON.stringify(answer)}`] };
      },
      last: async ({ plan }, ctx) => {
        await sleep(ctx.signal);
        return { log: [`${plan.run} last`] };
      },
    },
    edges: { start: ({ plan }) => (plan.ask ? "ask" : "last"), ask: "last" },
  });
  return graph({
    state: { log: list<string>(), talk: messages(), plan: value<Plan>(nothing) },
    nodes: {
      first: async ({ plan }, ctx) => {
        const message = ctx.message();
        for (let i = 0; i < plan.tokens; i++) {
          message.write(`${i} `);
          if (i % 3 === 0) await sleep(ctx.signal);
        }
        return { log: [`${plan.run} first`], talk: [message.end()] };
      },
      left: async ({ plan }, ctx) => {
        const once = await ctx.step("once", () => plan.run);
        await sleep(plan.deaf ? null : ctx.signal);
        if (plan.fails) throw new Error("left was told to fail");
        return { log: [`${once} left`] };
      },
      right: async ({ plan }, ctx) => {
        await sleep(ctx.signal);
        ctx.emit({ from: plan.run });
        return { log: [`${plan.run} right`] };
      },
      join: {
        after: ["left", "right"],
        run: async ({ plan }) => ({ log: [`${plan.run} join`] }),
      },
      close,
    },
    edges: {
      start: "first",
      first: ["left", "right"],
      join: "close",
    },
  });
}
