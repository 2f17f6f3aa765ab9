import { graph, list, send, value } from "../index.ts";
import { objectSchema } from "./object-schema.ts";
import { streamWords } from "./scripted-answers.ts";

interface Note {
  /** The run that wrote the note: a thread may have several runs. */
  readonly run: string;
  readonly topic: string;
  readonly text: string;
}

const MAX_PARTS = 8;

/** Splits a question into topics at commas, semicolons and "and". */
function topicsOf(question: string): readonly string[] {
  const parts = question.split(/,|;|\band\b/i).map((part) => withoutMarks(part.trim()));
  return [...new Set(parts.filter((part) => part !== ""))].slice(0, MAX_PARTS);
}

/** Removes the punctuation at the end of a text. The pattern `/[?.!]+$/` would take quadratic time on a long row of such characters. */
function withoutMarks(text: string): string {
  let end = text.length;
  while (end > 0 && "?.!".includes(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}

/** A graph that splits a question into topics, researches all of them in parallel, and writes one report when all are done. */
export default graph({
  name: "research",
  state: { question: value(""), notes: list<Note>(), report: value<string>() },
  nodes: {
    plan: async ({ question }, ctx) => {
      const topics = topicsOf(question);
      ctx.emit({ topics });
      return topics.map((topic) => send("look", { topic }));
    },
    look: {
      input: objectSchema(({ topic }) => (typeof topic === "string" ? { topic } : "topic must be a string")),
      run: async ({ topic }, ctx) => {
        const text = await ctx.step("found", () => `${topic} has ${topic.length} letters.`);
        ctx.emit({ looked: topic });
        return { notes: [{ run: ctx.runId, topic, text }] };
      },
    },
    write: async ({ notes }, ctx) => {
      const own = notes.filter(({ run }) => run === ctx.runId);
      const message = await streamWords(ctx.message(), own.map(({ text }) => text).join(" "), ctx);
      return { report: String(message.content) };
    },
  },
  edges: { start: "plan", look: "write" },
});
