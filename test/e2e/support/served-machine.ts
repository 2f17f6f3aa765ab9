import { lines } from "./clients.ts";
import { serve } from "./server.ts";

const connect = (lines[0] as (typeof lines)[number])[1];

type Graphs = NonNullable<NonNullable<Parameters<typeof serve>[0]>["graphs"]>;

/** Serves a machine as the graph `machine`, with a thread. `data`: a directory, so that another call finds the thread again. */
export async function serveMachine(machine: unknown, data?: string) {
  const app = await serve({ graphs: { machine } as Graphs, ...(data !== undefined && { data }) });
  const client = connect(app.url);
  const { thread_id: thread } = await client.threads.create();
  const wait = (payload: object, on = thread) =>
    client.runs.wait(on, "machine", payload as never) as Promise<Readonly<Record<string, unknown>>>;
  const send = (type: string, on = thread) => wait({ command: { resume: { type } } }, on);
  return { app, client, thread, wait, send, path: `${app.url}/threads/${thread}` };
}
