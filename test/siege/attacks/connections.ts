import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { defineAttack } from "../siege.ts";

/** Returns the seconds of processor time that a process has used. */
function used(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

export const halfOpen = defineAttack({
  name: "half-open",
  sent: "half-open connections, more than there are descriptors",
  server: { descriptors: 300 },
  mayCloseNew: true,
  full: { size: 900 },
  small: { size: 400 },
  async attack({ server, hostile, other }, count: number) {
    const thread = await other.thread();
    const port = Number(new URL(server.url).port);
    const sockets: Socket[] = Array.from({ length: count }, () => connect(port, "127.0.0.1"));
    for (const socket of sockets) socket.on("error", () => undefined);
    await sleep(1_000);
    const before = used(server.pid);
    await sleep(2_000);
    const busy = (used(server.pid) - before) / 2;
    // Storage must still work: its files have descriptors of their own.
    for (let i = 0; i < 20; i++) await other.run(thread, "keep", { text: String(i) });
    for (const socket of sockets) socket.destroy();
    if (busy > 0.6) throw new Error(`the server used ${Math.round(busy * 100)} % of a processor`);
    await sleep(500);
    await hostile.thread();
  },
});
