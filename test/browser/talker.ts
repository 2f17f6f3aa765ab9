import { graph, messages } from "../../src/index.ts";
import { latches, unlessAborted } from "../e2e/support/latches.ts";

/** A graph that sends one word at a time, each when the test releases it. */
export function talker(words: readonly string[]) {
  const may = latches();
  const talking = graph({
    state: { messages: messages() },
    nodes: {
      speak: async (_state, ctx) => {
        const message = ctx.message();
        for (const word of words) {
          await unlessAborted(may(word).passed, ctx.signal);
          message.write(word);
        }
        await unlessAborted(may("end").passed, ctx.signal);
        return { messages: [message.end()] };
      },
    },
    edges: { start: "speak" },
  });
  return { talking, say: (word: string) => may(word).pass(), end: () => may("end").pass() };
}
