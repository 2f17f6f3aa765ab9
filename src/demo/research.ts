import { graph, list, send, value } from "../index.ts";
import { schema } from "./schema.ts";
import { speak } from "./scripted.ts";

interface Note {
  /** The run that wrote it: a thread may be asked again. */
  readonly run: string;
  readonly topic: string;
  readonly text: string;
}

const MOST = 8;

/** The parts of a question, as far as commas and "and" tell them. */
function topicsOf(question: string): readonly string[] {
  const parts = question.split(/,|;|\band\b/i).map((part) => part.trim().replace(/[?.!]+$/, ""));
  return [...new Set(parts.filter((part) => part !== ""))].slice(0, MOST);
}

/** Splits a question into topics, looks into all of them at once, and writes one report when all are done. */
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
      input: schema(({ topic }) => (typeof topic === "string" ? { topic } : "topic must be a string")),
      run: async ({ topic }, ctx) => {
        const text = await ctx.step("found", () => `${topic} has ${topic.length} letters.`);
        ctx.emit({ looked: topic });
        return { notes: [{ run: ctx.runId, topic, text }] };
      },
    },
    write: async ({ notes }, ctx) => {
      const own = notes.filter(({ run }) => run === ctx.runId);
      const message = await speak(ctx.message(), own.map(({ text }) => text).join(" "), ctx);
      return { report: String(message.content) };
    },
  },
  edges: { start: "plan", look: "write" },
});
