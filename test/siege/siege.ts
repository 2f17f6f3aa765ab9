import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "./client.ts";
import { compile } from "../fixtures/compile.ts";
import type { Observed, Watched } from "./observer.ts";
import { HOSTILE_KEY, OTHER_KEY, Server, type ServerOptions } from "./server.ts";

/** The context of an attack: the hostile tenant's client, the other tenant's client, and the server. */
export interface Siege {
  readonly server: Server;
  readonly hostile: Client;
  readonly other: Client;
}

export interface Scale<Size> {
  readonly size: Size;
  /**
   * Milliseconds that the other tenant may wait. Default 300. At the small size, other tests load the machine, so it is a limit of the CPU time
   * that the server's main thread uses meanwhile: default 1000. The wait itself may be {@link LOADED} times as long.
   */
  readonly wait?: number;
  /** MiB that the server may use above its memory at rest. Default 400. */
  readonly memory?: number;
}

/** An attack by a hostile client, at its original size, and at a small size for each run of the tests. */
export interface Attack<Size = unknown> {
  readonly name: string;
  /** A description of what is sent, for the table. */
  readonly sent: string;
  readonly full: Scale<Size>;
  /** Absent if even a size that shows the fault takes too long for each run of the tests. */
  readonly small?: Scale<Size>;
  readonly server?: ServerOptions;
  /** True if the server may close the other tenant's new connections at once. Open connections must still be served. */
  readonly mayCloseNew?: true;
  /** Prepares data such as threads. Not measured. */
  prepare?(siege: Siege, size: Size): Promise<void>;
  /** Sends the attack and checks the answers. @throws Error if an answer is wrong */
  attack(siege: Siege, size: Size): Promise<void>;
}

/** Hides the type of an attack's size. */
export const defineAttack = <Size>(made: Attack<Size>): Attack => made as Attack;

export interface Outcome {
  readonly name: string;
  readonly sent: string;
  /** Milliseconds: the longest wait, over both requests. */
  readonly waited: number;
  readonly wait: number;
  /** MiB: the largest growth above the memory at rest. */
  readonly grown: number;
  readonly memory: number;
  /** The exceeded limits and wrong answers; empty: none. */
  readonly breaches: readonly string[];
}

/** Matches the errors of a connection that is closed at once. */
const CLOSED = /^(socket hang up|read ECONNRESET|write EPIPE)$/;

const MIB = 1024 * 1024;
/** Milliseconds that the other tenant continues after the attack. */
const AFTER = 300;

/** How many times longer an answer may take where other tests load the machine. */
const LOADED = 10;

/** Starts a server, runs the hostile tenant's attack, and reports the effects on the other tenant. */
export async function besiege(
  { name, sent, server: options = {}, prepare, attack, mayCloseNew, ...scales }: Attack,
  scale: "full" | "small",
  transport?: "uws" | "node",
): Promise<Outcome> {
  const { size, wait = scale === "full" ? 300 : 1000, memory = 400 } = scales[scale] ?? scales.full;
  const server = await Server.start({ ...options, ...(transport && { transport }) });
  const clients = [new Client(server.url, HOSTILE_KEY), new Client(server.url, OTHER_KEY)] as const;
  const [hostile, other] = clients;
  const breaches: string[] = [];
  try {
    const siege = { server, hostile, other };
    const thread = await other.thread();
    await other.run(thread, "chat", { messages: [{ type: "human", content: "hello" }] });
    await prepare?.(siege, size);
    const watched: Watched = {
      url: server.url,
      pid: server.pid,
      headers: OTHER_KEY,
      state: `/threads/${thread}/state`,
      run: `/threads/${await other.thread()}/runs/wait`,
      body: JSON.stringify({ assistant_id: "keep", input: { text: "x" } }),
    };
    const observed = await observe(watched, async () => {
      try {
        await attack(siege, size);
      } catch (cause) {
        breaches.push(`the attack: ${cause instanceof Error ? cause.message : String(cause)}`);
      }
      await sleep(AFTER);
    });
    const waited = Math.round(Math.max(observed.ok, observed.state, observed.run));
    const grown = Math.round((observed.most - observed.rest) / MIB);
    if (server.hasEnded) breaches.push(`the server ended: ${server.output.slice(-2000)}`);
    const longest = scale === "full" ? wait : LOADED * wait;
    if (scale === "small" && observed.busy > wait)
      breaches.push(
        `the server was busy for ${observed.busy} ms while the other tenant waited, more than ${wait}`,
      );
    if (waited > longest) {
      const [ok, state, run] = [observed.ok, observed.state, observed.run].map(Math.round);
      breaches.push(
        `the other tenant waited ${waited} ms, more than ${longest} (/ok ${ok}, state ${state}, run ${run})`,
      );
    }
    if (grown > memory) breaches.push(`memory grew by ${grown} MiB, more than ${memory}`);
    for (const [seen, times] of Object.entries(observed.failures)) {
      if (mayCloseNew === true && CLOSED.test(seen)) continue;
      breaches.push(`the other tenant was answered "${seen}" ${times} times`);
    }
    return { name, sent, waited, wait, grown, memory, breaches };
  } finally {
    for (const client of clients) client.close();
    await server.stop();
  }
}

async function observe(watched: Watched, attack: () => Promise<void>): Promise<Observed> {
  const program = await compile(join(import.meta.dirname, "observer.ts"));
  const child = fork(program.script, { execArgv: [] });
  const ended = once(child, "exit");
  try {
    child.send(watched);
    await Promise.race([once(child, "message"), ended]);
    await attack();
    const told = once(child, "message");
    child.send("stop");
    const [observed] = (await Promise.race([told, ended])) as [Observed | number];
    if (typeof observed === "number" || observed === null) throw new Error(`the observer ended: ${observed}`);
    return observed;
  } finally {
    child.kill();
    await ended;
    program.remove();
  }
}
