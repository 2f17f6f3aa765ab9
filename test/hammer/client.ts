import { setTimeout as sleep } from "node:timers/promises";
import { multitaskStrategies } from "../../src/model/run.ts";
import type { SeededRandom } from "../chaos/random.ts";

interface Answer {
  /** 0: the client or the server has closed the connection. */
  readonly status: number;
  readonly headers: Headers;
  readonly json: unknown;
}

interface Slot {
  thread: string;
  /** True: the thread is deleted and created again from time to time. */
  readonly isShortLived: boolean;
  /** The runs that were acknowledged last. */
  readonly runs: string[];
}

interface ThreadRecord {
  readonly status: string;
  readonly values: unknown;
  readonly interrupts: { readonly [task: string]: readonly { readonly id: string }[] };
}

interface State {
  readonly values: unknown;
  readonly next: readonly string[];
  readonly tasks: readonly { readonly interrupts: readonly { readonly id: string }[] }[];
}

const THREADS = 5;
/** The number of recent runs of a thread that requests use. */
const REMEMBERED = 6;
/** Milliseconds: the limit for an answer. */
const LONGEST = 20_000;
const ENDED = new Set(["success", "error", "timeout", "interrupted"]);
const NONE: Answer = { status: 0, headers: new Headers(), json: undefined };

/** Sends random requests, checks each answer, and knows what the server must have stored. */
export class Client {
  url = "";
  /** True while the server is stopped: it refuses requests and closes connections. */
  isStopping = false;
  sent = 0;
  readonly answers = new Map<string, number>();
  readonly #dice: SeededRandom;
  readonly #faults: string[];
  readonly #slots: readonly Slot[];
  /** Acknowledged runs, with their threads. */
  readonly #runs = new Map<string, string>();
  /** Runs, and threads with their runs, that a request may have rolled back. */
  readonly #mayBeGone = new Set<string>();
  #ended = 0;

  constructor(dice: SeededRandom, faults: string[]) {
    this.#dice = dice;
    this.#faults = faults;
    this.#slots = Array.from({ length: THREADS }, (_, i) => ({
      thread: this.#newId(),
      isShortLived: i < 2,
      runs: [],
    }));
  }

  async send(clients: number, until: number): Promise<void> {
    const one = async (): Promise<void> => {
      while (performance.now() < until && !this.#isCut()) {
        await this.#next();
        if (this.#dice.chance(0.1)) await sleep(this.#dice.between(1, 30));
      }
    };
    this.#ended = 0;
    await Promise.all(Array.from({ length: clients }, one));
  }

  /** Checks whether the answer is missing because the server stops. */
  #isCut(): boolean {
    return this.isStopping && this.#ended > 20;
  }

  // --- requests ---

  async #next(): Promise<void> {
    const dice = this.#dice;
    const slot = dice.pick(this.#slots);
    const { thread } = slot;
    const run = slot.runs.length > 0 ? dice.pick(slot.runs) : this.#newId();
    const at = `/threads/${thread}`;
    const action = dice.weighted({ interrupt: 3, rollback: 1 });
    switch (
      dice.weighted({
        start: 12,
        alone: 3,
        batch: 1,
        cancel: 6,
        cancelMany: 1,
        removeRun: 6,
        hunt: 2,
        removeThread: 2,
        update: 4,
        copy: 1,
        prune: 1,
        resume: 6,
        read: 5,
        patch: 1,
      })
    ) {
      case "start":
        return this.#start(slot, this.#request());
      case "resume":
        return this.#start(slot, { ...this.#request(), input: undefined, command: this.#command() });
      case "alone": {
        const kind = dice.pick(["", "/wait", "/stream"]);
        const body = {
          ...this.#request(),
          multitask_strategy: undefined,
          on_completion: dice.pick(["delete", "keep"]),
        };
        await this.#ask("runs alone", "POST", `/runs${kind}`, body, kind !== "" && dice.chance(0.3));
        return;
      }
      case "batch": {
        await this.#ask(
          "batch",
          "POST",
          "/runs/batch",
          [this.#request(), this.#request()].map((one) => ({ ...one, multitask_strategy: undefined })),
        );
        return;
      }
      case "cancel":
        if (action === "rollback") this.#mayBeGone.add(run);
        await this.#ask(
          `cancel ${action}`,
          "POST",
          `${at}/runs/${run}/cancel?action=${action}&wait=${dice.chance(0.5)}`,
        );
        return;
      case "cancelMany":
        if (action === "rollback") this.#mayBeGone.add(thread);
        await this.#ask("cancel many", "POST", `${at}/runs/cancel?action=${action}`, { status: "all" });
        return;
      case "removeRun":
        this.#mayBeGone.add(run);
        await this.#ask("delete run", "DELETE", `${at}/runs/${run}`);
        return;
      case "hunt":
        // Sent repeatedly while the run ends.
        this.#mayBeGone.add(run);
        await this.#ask("cancel", "POST", `${at}/runs/${run}/cancel?action=interrupt`);
        for (let i = 0; i < 12; i++) {
          if ((await this.#ask("delete run", "DELETE", `${at}/runs/${run}`)).status === 204) break;
        }
        return;
      case "removeThread":
        if (!slot.isShortLived) return;
        this.#mayBeGone.add(thread);
        await this.#ask("delete thread", "DELETE", at);
        if (dice.chance(0.5)) slot.thread = this.#newId();
        slot.runs.splice(0);
        return;
      case "update":
        await this.#ask("update state", "POST", `${at}/state`, {
          values: { log: ["by hand"] },
          ...(dice.chance(0.3) && { as_node: dice.pick(["begin", "end"]) }),
        });
        return;
      case "patch":
        await this.#ask("update thread", "PATCH", at, { metadata: { n: dice.between(1, 9) } });
        return;
      case "copy":
        await this.#ask("copy", "POST", `${at}/copy`);
        return;
      case "prune": {
        const strategy = slot.isShortLived ? dice.pick(["delete", "keep_latest"]) : "keep_latest";
        if (strategy === "delete") this.#mayBeGone.add(thread);
        await this.#ask("prune", "POST", "/threads/prune", { thread_ids: [thread], strategy });
        return;
      }
      case "read": {
        const path = dice.pick([
          `/runs/${run}/join`,
          `/runs/${run}/stream`,
          `/runs/${run}`,
          "/state",
          "/history",
          "/runs",
          "",
          "/stream",
        ]);
        const waits = /join|stream/.test(path);
        const leaves = path === "/stream" || (waits && dice.chance(0.5));
        const query = waits && path !== "/stream" && dice.chance(0.2) ? "?cancel_on_disconnect=true" : "";
        await this.#ask(`read ${path.replace(run, ":run")}`, "GET", at + path + query, undefined, leaves);
      }
    }
  }

  #request(): Record<string, unknown> {
    const dice = this.#dice;
    return {
      assistant_id: dice.weighted({ native: 3, hosted: 1 }),
      input: { kind: dice.weighted({ work: 5, ask: 3, inner: 2, fail: 1 }) },
      multitask_strategy: dice.pick(["enqueue", ...multitaskStrategies]),
      durability: dice.pick(["sync", "async", "exit"]),
      stream_mode: ["values", "custom"],
      if_not_exists: "create",
      ...(dice.chance(0.15) && { after_seconds: dice.between(1, 20) / 100 }),
      ...(dice.chance(0.1) && { timeout_seconds: dice.between(1, 20) / 1_000 }),
      ...(dice.chance(0.1) && { interrupt_before: ["end"] }),
    };
  }

  #command(): object {
    return this.#dice.chance(0.8) ? { resume: "yes" } : { goto: this.#dice.pick(["begin", "end"]) };
  }

  async #start(slot: Slot, body: Record<string, unknown>): Promise<void> {
    const dice = this.#dice;
    const { thread } = slot;
    const kind = dice.pick(["", "", "/wait", "/stream"]);
    // It is unknown which runs this rolls back.
    if (body["multitask_strategy"] === "rollback") this.#mayBeGone.add(thread);
    const request = kind === "" ? body : { ...body, on_disconnect: dice.pick(["cancel", "continue"]) };
    const what = `${body["command"] === undefined ? "start" : "resume"}${kind}`;
    const answer = await this.#ask(
      what,
      "POST",
      `/threads/${thread}/runs${kind}`,
      request,
      kind !== "" && dice.chance(0.5),
    );
    const location = /\/runs\/([^/]+)$/.exec(answer.headers.get("content-location") ?? "")?.[1];
    const id = location ?? (answer.status === 200 ? (answer.json as { run_id?: string })?.run_id : undefined);
    if (id === undefined) return;
    this.#runs.set(id, thread);
    if (thread !== slot.thread) return;
    slot.runs.push(id);
    if (slot.runs.length > REMEMBERED) slot.runs.shift();
  }

  #newId(): string {
    const hex = Array.from({ length: 32 }, () => this.#dice.between(0, 15).toString(16)).join("");
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
  }

  async #ask(what: string, method: string, path: string, body?: unknown, leaves = false): Promise<Answer> {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), leaves ? this.#dice.between(0, 40) : LONGEST);
    let answer = NONE;
    this.sent++;
    try {
      const response = await fetch(this.url + path, {
        method,
        signal: controller.signal,
        ...(body !== undefined && {
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body),
        }),
      });
      answer = { status: response.status, headers: response.headers, json: undefined };
      const text = await response.text();
      const isJson =
        response.headers.get("content-type")?.startsWith("application/json") === true && text !== "";
      answer = { ...answer, json: isJson ? (JSON.parse(text) as unknown) : text };
    } catch (cause) {
      if (this.isStopping) this.#ended++;
      else if (!controller.signal.aborted)
        this.#faults.push(`${what}: ${String(cause)} ${String((cause as Error).cause)}`);
      else if (!leaves)
        this.#faults.push(
          `${what}: no answer after ${LONGEST} ms: ${method} ${path} ${JSON.stringify(body)}`,
        );
    } finally {
      clearTimeout(timer);
    }
    const told = `${what} ${answer.status}`;
    this.answers.set(told, (this.answers.get(told) ?? 0) + 1);
    if (answer.status >= 500 && !(this.isStopping && answer.status === 503)) {
      this.#faults.push(`${told}: ${JSON.stringify(answer.json)}\n${method} ${path} ${JSON.stringify(body)}`);
    }
    return answer;
  }

  // --- checks ---

  /** Checks each run and thread of a server at rest. Resolves with the threads' records. */
  async verify(): Promise<ReadonlyMap<string, string>> {
    const records = new Map<string, string>();
    for (const [run, thread] of this.#runs) {
      const { status, json } = await this.#ask("verify run", "GET", `/threads/${thread}/runs/${run}`);
      const { status: end } = (json ?? {}) as { status?: string };
      if (status === 404 && (this.#mayBeGone.has(run) || this.#mayBeGone.has(thread))) continue;
      if (status !== 200 || !ENDED.has(end ?? "")) {
        this.#faults.push(
          `run ${run} of thread ${thread} was acknowledged, and is ${status} ${JSON.stringify(json)}`,
        );
      }
    }
    for (const thread of new Set(this.#runs.values())) {
      const record = await this.#verifyThread(thread);
      if (record !== undefined) records.set(thread, JSON.stringify(record));
    }
    return records;
  }

  /** Forgets the checked runs, so that a long test does not check ever more. */
  forget(): void {
    this.#runs.clear();
  }

  async #verifyThread(thread: string): Promise<ThreadRecord | undefined> {
    const answer = await this.#ask("verify thread", "GET", `/threads/${thread}`);
    if (answer.status === 404 && this.#mayBeGone.has(thread)) return undefined;
    const record = answer.json as ThreadRecord;
    const { json } = await this.#ask("verify state", "GET", `/threads/${thread}/state`);
    const state = json as State;
    const asked = Object.values(record.interrupts).flatMap((of) => of.map(({ id }) => id));
    const stored = state.tasks.flatMap(({ interrupts }) => interrupts.map(({ id }) => id));
    const told = `thread ${thread}: ${JSON.stringify({ status: record.status, asked, stored, next: state.next })}`;
    if (record.status === "busy") this.#faults.push(`busy at rest, ${told}`);
    if (asked.toSorted().join() !== stored.toSorted().join()) this.#faults.push(`questions differ, ${told}`);
    if (record.status === "idle" && stored.length > 0) this.#faults.push(`idle with questions, ${told}`);
    if (JSON.stringify(record.values ?? {}) !== JSON.stringify(state.values)) {
      this.#faults.push(`values differ, ${told}: ${JSON.stringify([record.values, state.values])}`);
    }
    return record;
  }
}
