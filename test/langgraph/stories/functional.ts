import { entrypoint, getPreviousState, interrupt, task } from "@langchain/langgraph";
import { type Config, pause, sub, type Stories } from "./parts.ts";

/** The functional API. */
export const functionalStories: Stories = {
  "functional: entrypoint with tasks in parallel, previous state": {
    make: () => {
      const double = task("double", async (n: number) => {
        await pause(n);
        return n * 2;
      });
      const add = task({ name: "add", retry: { maxAttempts: 2 } }, async (a: number, b: number) => a + b);
      return entrypoint({ name: "flow" }, async ({ ns }: { ns: number[] }) => {
        const before = getPreviousState<{ sum: number }>();
        const all = await Promise.all(ns.map((n) => double(n)));
        const sum = await add(
          all.reduce((a, b) => a + b, 0),
          before?.sum ?? 0,
        );
        return { sum };
      });
    },
    deeds: [{ input: { ns: [1, 20, 40] } }, { input: { ns: [5] } }],
  },
  "functional: entrypoint.final, interrupts in tasks": {
    make: () => {
      const ask = task("ask", async (q: string) => interrupt(q) as string);
      const note = task("note", async (q: string) => `noted ${q}`);
      return entrypoint({ name: "flow" }, async () => {
        const first = await note("one");
        const a = await ask("who?");
        const b = await ask("why?");
        return entrypoint.final({ value: { first, a, b }, save: { a } });
      });
    },
    deeds: [{ input: {} }, { command: { resume: "me" } }, { command: { resume: "so" } }, { input: {} }],
  },
  "functional: returns a string, a number": {
    make: () => entrypoint({ name: "flow" }, async (n: { n: number }) => `n ${n.n}`),
    deeds: [{ input: { n: 1 } }, { input: { n: 2 } }],
  },
  "functional: entrypoint calls a graph": {
    make: () => {
      const inner = sub("in");
      return entrypoint({ name: "flow" }, async () => {
        const r = await inner.invoke({ log: ["begin"] });
        return { r: r.log };
      });
    },
    deeds: [{ input: {} }],
  },
  "functional: a task that fails is tried again, one that is cached runs once": {
    make: () => {
      let tries = 0;
      const flaky = task(
        { name: "flaky", retry: { maxAttempts: 3, initialInterval: 1, jitter: false, logWarning: false } },
        async (n: number) => {
          if (tries++ % 2 === 0) throw new Error("not yet");
          return n + 1;
        },
      );
      return entrypoint({ name: "flow" }, async ({ n }: { n: number }) => ({ n: await flaky(n) }));
    },
    deeds: [{ input: { n: 1 } }, { input: { n: 2 } }],
  },
  "functional: a task that fails for good; custom events": {
    make: () => {
      const bad = task("bad", async () => {
        throw new RangeError("bad");
      });
      return entrypoint({ name: "flow" }, async (_: unknown, config: Config) => {
        config.writer?.({ at: "begin" });
        await bad();
        return {};
      });
    },
    deeds: [{ input: {} }],
  },
  "functional: two tasks ask side by side": {
    make: () => {
      const ask = task("ask", async (q: string) => `${q} ${String(interrupt(q))}`);
      return entrypoint({ name: "flow" }, async () => ({
        all: await Promise.all([ask("a"), ask("b")]),
      }));
    },
    deeds: [{ input: {} }],
  },
};
