import { setTimeout as sleep } from "node:timers/promises";
import type { IncomingMessage } from "node:http";
import { isHooked } from "./checkers/webhooks.ts";
import { Lost, type Answer, type Client } from "./client.ts";
import type { Disturbance, Ledger, RunEntry, StreamEntry, Violation } from "./ledger.ts";
import type { Dice } from "./random.ts";

export const TERMINAL = new Set(["success", "error", "timeout", "interrupted"]);

/** What clients do, by how often. */
const MIX = {
  wait: 20,
  stream: 25,
  background: 12,
  enqueue: 10,
  interrupt: 6,
  rollback: 5,
  cancel: 8,
  ask: 10,
  read: 10,
} as const;

/** Answers that a client may get for asking at a bad moment. Anything else is a fault, above all 5xx. */
const FINE = new Set([200, 202, 204, 404, 409]);

type Report = (violation: Violation) => void;

const RUN = /\/runs\/([0-9a-f-]{36})$/;

/** A number of clients that do a mix of things on a few threads until they are stopped, and write all of it down. */
export class Load {
  readonly #client: Client;
  readonly #ledger: Ledger;
  readonly #dice: Dice;
  readonly #most: number;
  readonly #modes: readonly string[];
  readonly #hook: string;
  readonly #report: Report;
  #stopped = false;
  #over = false;
  #pending: Promise<void>[] = [];
  operations = 0;

  constructor(
    client: Client,
    ledger: Ledger,
    dice: Dice,
    threads: number,
    modes: readonly string[],
    hook: string,
    report: Report,
  ) {
    this.#client = client;
    this.#ledger = ledger;
    this.#dice = dice;
    this.#most = threads;
    this.#modes = modes;
    this.#hook = hook;
    this.#report = report;
  }

  start(clients: number): void {
    this.#pending = Array.from({ length: clients }, () => this.#run());
  }

  /** Begins nothing new; resolves when every request has had its answer. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#pending);
  }

  /** The server is about to be killed: from now on a broken connection is nobody's fault. */
  expectCut(): void {
    this.#stopped = true;
    this.#over = true;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      try {
        await this.#act();
        this.operations++;
      } catch (error) {
        if (!(error instanceof Lost)) throw error;
        if (this.#over) return;
        // The server may be down for a reason of its own; the driver finds that out.
        this.#report({
          invariant: "connection",
          message: `a connection broke while nobody had killed the server: ${error.message}`,
          evidence: { at: this.#ledger.now() },
        });
        return;
      }
      await sleep(this.#dice.between(0, 5));
    }
  }

  async #thread(): Promise<string> {
    const known = [...this.#ledger.threads.keys()];
    // Fresh threads all along: the youngest are the likeliest to be lost.
    if (known.length < this.#most || this.#dice.chance(0.02)) {
      const answer = await this.#json("POST", "/threads", {});
      const thread = (answer.json as { thread_id?: string }).thread_id;
      if (answer.status !== 200 || thread === undefined) throw new Lost("no thread");
      this.#ledger.threads.set(thread, { acknowledged: this.#ledger.now() });
      return thread;
    }
    // Recent threads mostly, so that each has a history that is short enough to be looked through.
    return this.#dice.pick(known.slice(-this.#most));
  }

  async #act(): Promise<void> {
    const thread = await this.#thread();
    const input = { kind: "work", pace: this.#dice.between(0, 25) };
    switch (this.#dice.weighted(MIX)) {
      case "wait":
        return this.#wait(thread, "wait", { input });
      case "stream":
        return this.#stream(thread, "stream", { input });
      case "background": {
        const entry = await this.#create(thread, "background", { input });
        if (entry !== undefined && this.#dice.chance(0.5)) await this.#join(entry);
        return;
      }
      case "enqueue":
        for (let i = this.#dice.between(2, 4); i > 0; i--) {
          await this.#create(thread, "enqueue", { input, multitask_strategy: "enqueue" });
        }
        return this.#stream(thread, "enqueue", { input, multitask_strategy: "enqueue" });
      case "interrupt":
        return this.#disturbing(this.#ledger.disturb(thread, "interrupt"), () =>
          this.#wait(thread, "interrupt", { input, multitask_strategy: "interrupt" }),
        );
      case "rollback":
        return this.#disturbing(this.#ledger.disturb(thread, "rollback"), () =>
          this.#stream(thread, "rollback", { input, multitask_strategy: "rollback" }),
        );
      case "cancel":
        return this.#cancel(thread, input);
      case "ask":
        return this.#ask(thread);
      case "read":
        return this.#read(thread);
    }
  }

  async #disturbing(disturbance: Disturbance, act: () => Promise<void>): Promise<void> {
    await act();
    disturbance.until = this.#ledger.now();
  }

  async #cancel(thread: string, input: unknown): Promise<void> {
    const entry = await this.#create(thread, "cancelled", { input, multitask_strategy: "enqueue" });
    if (entry === undefined) return;
    await sleep(this.#dice.between(0, 30));
    const action = this.#dice.pick(["interrupt", "rollback"] as const);
    const wait = this.#dice.pick([0, 1]);
    const disturbance = this.#ledger.disturb(thread, action, entry.run);
    await this.#json("POST", `/threads/${thread}/runs/${entry.run}/cancel?wait=${wait}&action=${action}`);
    disturbance.until = this.#ledger.now();
  }

  async #ask(thread: string): Promise<void> {
    await this.#wait(thread, "ask", { input: { kind: "ask", pace: 1 } });
    const answer = await this.#json("GET", `/threads/${thread}`);
    if ((answer.json as { status?: string }).status !== "interrupted") return;
    const resume = { command: { resume: `answer-${this.#dice.between(0, 1e6)}` } };
    if (this.#dice.chance(0.5)) await this.#wait(thread, "resume", resume);
    else await this.#stream(thread, "resume", resume);
  }

  async #read(thread: string): Promise<void> {
    const what = this.#dice.pick(["state", "history?limit=5", "runs?limit=20"]);
    await this.#json("GET", `/threads/${thread}/${what}`);
  }

  #body(thread: string, body: object): object {
    return { assistant_id: "chaos", ...(isHooked(thread) && { webhook: this.#hook }), ...body };
  }

  async #create(thread: string, what: string, body: object): Promise<RunEntry | undefined> {
    const sent = this.#ledger.now();
    const answer = await this.#json("POST", `/threads/${thread}/runs`, this.#body(thread, body));
    if (answer.status !== 200) return undefined;
    return this.#ledger.acknowledge(thread, (answer.json as { run_id: string }).run_id, what, sent);
  }

  async #wait(thread: string, what: string, body: object): Promise<void> {
    const sent = this.#ledger.now();
    let entry: RunEntry | undefined;
    const answer = await this.#client.json("POST", `/threads/${thread}/runs/wait`, this.#body(thread, body), {
      head: (status, headers) => (entry = this.#acknowledged(status, headers, thread, what, sent)),
    });
    this.#fine(answer, `POST runs/wait (${what})`);
    if (entry !== undefined && answer.status === 200) this.#settled(entry, answer.json);
  }

  async #join(entry: RunEntry): Promise<void> {
    const answer = await this.#json("GET", `/threads/${entry.thread}/runs/${entry.run}/join`);
    if (answer.status === 200) this.#settled(entry, answer.json);
  }

  async #stream(thread: string, what: string, body: object): Promise<void> {
    const sent = this.#ledger.now();
    const modes = this.#dice.chance(0.6)
      ? this.#modes
      : [this.#dice.pick(this.#modes), this.#dice.pick(this.#modes)];
    const stream: StreamEntry = { modes: [...new Set(modes)], frames: [], how: "open" };
    let entry: RunEntry | undefined;
    const end = await this.#client.stream(
      "POST",
      `/threads/${thread}/runs/stream`,
      this.#body(thread, { stream_mode: stream.modes, on_disconnect: "continue", ...body }),
      {},
      (status, headers) => {
        entry = this.#acknowledged(status, headers, thread, what, sent);
        entry?.streams.push(stream);
      },
      (frame) => stream.frames.push(frame),
    );
    stream.how = end.how === "end" ? "end" : "cut";
    if (end.how === "cut" && !this.#over) throw new Lost(end.error ?? "a stream was cut");
    if (end.how === "refused")
      this.#fine({ status: end.status, json: end.error }, `POST runs/stream (${what})`);
    if (end.how === "end" && entry !== undefined) entry.ended ??= this.#ledger.now();
  }

  #acknowledged(
    status: number,
    headers: IncomingMessage["headers"],
    thread: string,
    what: string,
    sent: number,
  ): RunEntry | undefined {
    if (status !== 200) return undefined;
    const run = RUN.exec(String(headers["content-location"] ?? ""))?.[1];
    if (run === undefined) {
      this.#report({
        invariant: "wire",
        message: "a run was started without a Content-Location that ends with its id",
        evidence: { what, headers },
      });
      return undefined;
    }
    return this.#ledger.acknowledge(thread, run, what, sent);
  }

  /** A whole answer of `wait` or `join`: the run is over, and its work is in the state. */
  #settled(entry: RunEntry, json: unknown): void {
    entry.ended ??= this.#ledger.now();
    const log = (json as { log?: unknown } | undefined)?.log;
    if (!Array.isArray(log)) return;
    for (const line of log) {
      if (typeof line === "string" && line.startsWith(entry.run)) entry.shown.add(line);
    }
  }

  async #json(method: string, path: string, body?: unknown): Promise<Answer> {
    const answer = await this.#client.json(method, path, body);
    this.#fine(answer, `${method} ${path.replaceAll(/[0-9a-f-]{36}/g, "…")}`);
    return answer;
  }

  #fine(answer: Answer, what: string): void {
    if (FINE.has(answer.status)) return;
    // Nothing waits for an answer any more, or other questions do.
    if (answer.status === 422 && what.endsWith("(resume)")) return;
    this.#report({
      invariant: "wire",
      message: `${what} was answered with ${answer.status}`,
      evidence: answer.json,
    });
  }
}
