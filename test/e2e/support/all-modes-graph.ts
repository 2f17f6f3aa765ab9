import { graph, list, messages } from "../../../src/index.ts";
import { latch, unlessAborted } from "./latches.ts";

/**
 * A graph whose runs produce output in every stream mode: custom events, tokens, updates, values. They wait half way,
 * with the first half sent, until the test releases them.
 */
export function talking() {
  const reached = latch();
  const opened = latch();
  const talk = graph({
    state: { messages: messages(), log: list<string>() },
    nodes: {
      speak: async (_, ctx) => {
        ctx.emit({ progress: 0.5, text: 'é\n"quoted"\u2028' });
        ctx.emit([1, null]);
        const message = ctx.message();
        for (const token of ["Hel", "lo ", "there\n"]) message.write(token);
        return { messages: [message.end()], log: ["spoke"] };
      },
      hold: async (_, ctx) => {
        ctx.emit("waiting");
        reached.pass();
        await unlessAborted(opened.passed, ctx.signal);
        ctx.emit("going on");
        return { log: ["held"] };
      },
      left: async (_, ctx) => {
        ctx.emit("left");
        return { log: ["left"] };
      },
      right: async () => ({ log: ["right"], messages: [{ role: "ai", content: "as it is", id: "m1" }] }),
      // Returns nothing.
      last: async () => undefined,
    },
    edges: { start: "speak", speak: "hold", hold: ["left", "right"], left: "last", right: "last" },
  });
  return { talk, waits: reached.passed, open: () => opened.pass() };
}

export const ALL_MODES = ["values", "updates", "messages-tuple", "custom"] as const;
export type Mode = (typeof ALL_MODES)[number];

/** Returns the event names of stream modes. `metadata` and `error` occur in every mode. */
export const eventsOf = (modes: readonly Mode[]): ReadonlySet<string> =>
  new Set(["metadata", "error", ...modes.map((mode) => (mode === "messages-tuple" ? "messages" : mode))]);
