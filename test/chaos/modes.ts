import type { Client } from "./client.ts";

/** The modes that the load streams, and whose events are checked. */
const ALL_MODES = [
  "values",
  "updates",
  "messages",
  "messages-tuple",
  "custom",
  "debug",
  "tasks",
  "checkpoints",
];

/** Asks the server which of these modes it serves. */
export async function servedModes(client: Client): Promise<readonly string[]> {
  const served: string[] = [];
  for (const mode of ALL_MODES) {
    const made = await client.json("POST", "/threads", {});
    const thread = (made.json as { thread_id: string }).thread_id;
    const { status } = await client.stream(
      "POST",
      `/threads/${thread}/runs/stream`,
      { assistant_id: "chaos", input: { kind: "work", pace: 0 }, stream_mode: [mode] },
      {},
      () => {},
      () => {},
    );
    if (status === 200) served.push(mode);
  }
  if (served.length === 0) throw new Error("the server shows no stream mode at all");
  return served;
}
