import { END, graph, list, to, value, type Schema } from "../index.ts";

interface Verdict {
  readonly ok: boolean;
  readonly note?: string;
}

/** The JSON Schema of an answer; clients build a form from it. */
const form = {
  type: "object",
  properties: {
    ok: { type: "boolean", title: "Send it?" },
    note: { type: "string", title: "Note", description: "What to write otherwise, if it is not to be sent." },
  },
  required: ["ok"],
};

const standard = {
  version: 1,
  vendor: "demo",
  validate(answer: unknown) {
    const { ok, note } = (answer ?? {}) as { ok?: unknown; note?: unknown };
    if (typeof ok !== "boolean") {
      return { issues: [{ message: "must be true (send it) or false", path: ["ok"] }] };
    }
    return { value: typeof note === "string" ? { ok, note } : { ok } };
  },
  jsonSchema: { input: () => form, output: () => form },
} as const;

/** The schema of an answer. It could be any Standard Schema (zod, valibot, arktype); this one needs no package. */
const verdict: Schema<unknown, Verdict> = { "~standard": standard };

/**
 * A graph that writes a draft and asks a human about it. If the human accepts, the draft is sent. If the human refuses with a note, the
 * draft is written again; without a note, the graph ends.
 */
export default graph({
  name: "approval",
  state: {
    topic: value("a letter"),
    draft: value<string>(),
    sent: value(false),
    log: list<string>(),
  },
  nodes: {
    write: async (state, ctx) => {
      ctx.log.info("writing a draft", { topic: state.topic });
      return {
        draft: `Draft ${state.log.length + 1}: ${state.topic}`,
        sent: false,
        log: [`wrote about ${state.topic}`],
      };
    },
    review: async (state, ctx) => {
      const question = { question: "Send it? Answer with ok, and a note if not.", draft: state.draft };
      const { ok, note } = await ctx.interrupt(question, { schema: verdict });
      if (ok) return to("send", { log: ["approved"] });
      if (note === undefined) return to(END, { log: ["refused"] });
      return to("write", { topic: `${state.topic} (${note})`, log: ["sent back"] });
    },
    send: async () => ({ sent: true, log: ["sent"] }),
  },
  edges: { start: "write", write: "review" },
});
