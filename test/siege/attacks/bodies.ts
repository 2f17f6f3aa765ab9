import { Client } from "../client.ts";
import { defineAttack, type Siege } from "../siege.ts";

const MIB = 1024 * 1024;
const CONNECTIONS = 60;

/**
 * Sends all requests at once, each on its own connection. Returns the number of answers by status; 0: the connection
 * was cut.
 */
async function sendAll(client: Client, path: string, bytes: number): Promise<Map<number, number>> {
  const body = Buffer.from(JSON.stringify({ metadata: { text: "x".repeat(bytes - 32) } }));
  const statuses = new Map<number, number>();
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      const status = await client.send("POST", path, body).then(
        (answer) => answer.status,
        () => 0,
      );
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }),
  );
  return statuses;
}

const scales = { full: { size: 16 * MIB, wait: 600 }, small: { size: 4 * MIB, memory: 200 } };

export const bodiesWithoutKey = defineAttack({
  name: "bodies-without-key",
  sent: `${CONNECTIONS} connections without a key, each with a body of 16 MiB`,
  ...scales,
  async attack({ server }: Siege, bytes: number) {
    const nobody = new Client(server.url, {});
    try {
      const statuses = await sendAll(nobody, "/threads", bytes);
      if (statuses.get(401) !== CONNECTIONS)
        throw new Error(`answered ${JSON.stringify([...statuses])} instead of 401`);
    } finally {
      nobody.close();
    }
  },
});

export const bodies = defineAttack({
  name: "bodies",
  sent: `${CONNECTIONS} connections of a tenant, each with a body of 16 MiB`,
  ...scales,
  async attack({ hostile }: Siege, bytes: number) {
    const statuses = await sendAll(hostile, "/threads/search", bytes);
    // Some are parsed, and refused because the filter is too long.
    for (const status of statuses.keys())
      if (status !== 422 && status !== 429) throw new Error(`answered ${JSON.stringify([...statuses])}`);
    if (!statuses.has(422)) throw new Error("none was read");
  },
});
