import { expectList } from "../client.ts";
import { entry, type Siege } from "../siege.ts";

/** The thread of an entry, by server, because entries have no state of their own. */
const threads = new WeakMap<Siege["server"], string>();

const threadOf = ({ server }: Siege): string => threads.get(server) ?? "";

export const history = entry({
  name: "history",
  sent: "history with limit 1000 on a thread of many runs, three times at once",
  full: { size: 1000 },
  small: { size: 150, memory: 160 },
  async prepare({ hostile, server }, runs: number) {
    const thread = await hostile.thread();
    threads.set(server, thread);
    for (let i = 0; i < runs; i++) {
      await hostile.run(thread, "chat", { messages: [{ type: "human", content: "x".repeat(400) }] });
    }
  },
  async attack(siege) {
    const asked = { limit: 1000 };
    const path = `/threads/${threadOf(siege)}/history`;
    const answers = await Promise.all([1, 2, 3].map(() => siege.hostile.send("POST", path, asked)));
    for (const answer of answers) expectList(answer);
  },
});

export const largeStates = entry({
  name: "large-states",
  sent: "threads/search over many large states",
  full: { size: { threads: 30, bytes: 15 * 1024 * 1024 } },
  small: { size: { threads: 24, bytes: 4 * 1024 * 1024 }, memory: 150 },
  async prepare({ hostile }, { threads: count, bytes }: { threads: number; bytes: number }) {
    for (let i = 0; i < count; i++) {
      await hostile.run(await hostile.thread(), "keep", { text: "x".repeat(bytes) });
    }
  },
  async attack({ hostile }) {
    expectList(await hostile.send("POST", "/threads/search", { limit: 1000 }));
  },
});
