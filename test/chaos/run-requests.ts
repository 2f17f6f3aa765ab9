import type { IncomingMessage } from "node:http";
import { ConnectionLost, type Answer, type Client } from "./client.ts";
import type { Ledger, RunEntry, StreamEntry, Violation } from "./ledger.ts";
import type { SeededRandom } from "./random.ts";

/** A run that a client requests. */
export interface RequestedRun {
  /** The path before `/runs`: a thread's path, or empty. */
  readonly at: string;
  readonly what: string;
  readonly body: object;
  /** Milliseconds after which the client disconnects, if it does so before the end. */
  readonly leaves?: number;
  /** True if the run ends when the client disconnects. */
  readonly bound?: boolean;
  /** Records the acknowledgement of the run. */
  note(run: string, sent: number, hooked: boolean): RunEntry;
}

export interface RunRequestsDeps {
  readonly client: Client;
  readonly ledger: Ledger;
  readonly dice: SeededRandom;
  readonly modes: readonly string[];
  /** The graphs of runs on threads and of stateless runs. */
  readonly graphs: readonly string[];
  /** The URL of the webhook receiver. */
  readonly hook: string;
  readonly report: (violation: Violation) => void;
  /** Whether faults may come at any time, after which requests are refused with 503. */
  readonly mayBeRefused?: boolean;
}

/** Statuses that a client may get for a badly timed request. Any other status is a fault, above all 5xx. */
const FINE = new Set([200, 202, 204, 404, 409]);

const RUN = /\/runs\/([0-9a-f-]{36})$/;

/** The default durability, checkpoints at each step, or one checkpoint at the end. */
const DURABILITIES = [undefined, undefined, "sync", "exit"] as const;

/** Client requests for runs, and observation of the results. Every acknowledgement is recorded. */
export class RunRequests {
  readonly #deps: RunRequestsDeps;
  #over = false;

  constructor(deps: RunRequestsDeps) {
    this.#deps = deps;
  }

  get over(): boolean {
    return this.#over;
  }

  /** The server is about to be killed: from now on a broken connection is not a fault. */
  expectCut(): void {
    this.#over = true;
  }

  /** Creates a background run. */
  async create(order: RequestedRun): Promise<RunEntry | undefined> {
    const sent = this.#deps.ledger.now();
    const { hooked, body } = this.#body(order);
    const answer = await this.json("POST", `${order.at}/runs`, body);
    if (answer.status !== 200) return undefined;
    return order.note((answer.json as { run_id: string }).run_id, sent, hooked);
  }

  /** Resolves with the run and its outcome if the whole answer arrived. */
  async wait(order: RequestedRun): Promise<{ readonly entry: RunEntry; readonly json: unknown } | undefined> {
    const { client, ledger } = this.#deps;
    const sent = ledger.now();
    const { hooked, body } = this.#body(order);
    let entry: RunEntry | undefined;
    const leaving = this.#leaving(order, () => entry);
    try {
      const answer = await client.json("POST", `${order.at}/runs/wait`, body, {
        head: (status, headers) => (entry = this.#acknowledged(order, status, headers, sent, hooked)),
        signal: leaving.signal,
      });
      this.#fine(answer, `POST ${kindOf(order)}/wait (${order.what})`);
      if (entry === undefined || answer.status !== 200) return undefined;
      entry.ended ??= ledger.now();
      return { entry, json: answer.json };
    } catch (error) {
      if (leaving.signal.aborted) return undefined;
      throw error;
    } finally {
      leaving.stop();
    }
  }

  /** Resolves with the run if its stream ended completely. */
  async stream(
    order: RequestedRun,
  ): Promise<{ readonly entry: RunEntry; readonly stream: StreamEntry } | undefined> {
    const { client, ledger, dice, modes } = this.#deps;
    const sent = ledger.now();
    const { hooked, body } = this.#body(order);
    const some = dice.chance(0.6) ? modes : [dice.pick(modes), dice.pick(modes)];
    const stream: StreamEntry = { modes: [...new Set(some)], frames: [], how: "open" };
    let entry: RunEntry | undefined;
    const leaving = this.#leaving(order, () => entry);
    const end = await client.stream(
      "POST",
      `${order.at}/runs/stream`,
      { stream_mode: stream.modes, ...body },
      {},
      (status, headers) => {
        entry = this.#acknowledged(order, status, headers, sent, hooked);
        entry?.streams.push(stream);
      },
      (frame) => stream.frames.push(frame),
      leaving.signal,
    );
    leaving.stop();
    stream.how = end.how === "end" ? "end" : "cut";
    if (end.how === "cut" && !this.#over && !leaving.signal.aborted) {
      throw new ConnectionLost(end.error ?? "a stream was cut");
    }
    if (end.how === "refused") {
      this.#fine({ status: end.status, json: end.error }, `POST ${kindOf(order)}/stream (${order.what})`);
    }
    if (end.how !== "end" || entry === undefined) return undefined;
    entry.ended ??= ledger.now();
    return { entry, stream };
  }

  /** Follows a run over a WebSocket from its start. */
  async mirror({ thread, run, streams }: RunEntry): Promise<void> {
    const { client, dice, modes } = this.#deps;
    const stream: StreamEntry = {
      modes: dice.chance(0.6) ? modes : [dice.pick(modes)],
      frames: [],
      how: "open",
    };
    streams.push(stream);
    const path = `/threads/${thread}/runs/${run}/stream?stream_mode=${stream.modes.join()}`;
    const end = await client.mirror(path, (frame) => stream.frames.push(frame));
    stream.how = end.how === "end" ? "end" : "cut";
    if (end.how === "cut" && !this.#over) throw new ConnectionLost(end.error ?? "a mirror was cut");
    if (end.how === "refused") this.#fine({ status: end.status, json: end.error }, "the mirror of a run");
  }

  async json(method: string, path: string, body?: unknown): Promise<Answer> {
    const answer = await this.#deps.client.json(method, path, body);
    this.#fine(answer, `${method} ${path.replaceAll(/[0-9a-f-]{36}/g, "…")}`);
    return answer;
  }

  #graph({ at, what }: RequestedRun): string {
    const { ledger, dice } = this.#deps;
    // A kept thread continues with the graph that it was created for.
    if (at === "" && what !== "kept") return dice.pick(this.#deps.graphs);
    return ledger.threads.get(at.replace("/threads/", ""))?.graph ?? "chaos";
  }

  #body(order: RequestedRun): { readonly hooked: boolean; readonly body: object } {
    const { dice, hook } = this.#deps;
    const hooked = dice.chance(0.5);
    const durability = dice.pick(DURABILITIES);
    // Delayed runs must be as durable as the others.
    const after_seconds = dice.chance(0.1) ? 0.01 + 0.3 * dice.float() : undefined;
    return {
      hooked,
      body: {
        assistant_id: this.#graph(order),
        durability,
        after_seconds,
        ...(hooked && { webhook: hook }),
        ...order.body,
      },
    };
  }

  /** The client's disconnect. It is recorded before it happens, because its effects may follow at once. */
  #leaving({ leaves, bound }: RequestedRun, entry: () => RunEntry | undefined) {
    const controller = new AbortController();
    const leave = () => {
      const run = entry();
      if (run !== undefined && bound === true) this.#deps.ledger.disturb(run.thread, "interrupt", run.run);
      controller.abort();
    };
    const timer = leaves === undefined ? undefined : setTimeout(leave, leaves);
    return { signal: controller.signal, stop: () => clearTimeout(timer) };
  }

  #acknowledged(
    order: RequestedRun,
    status: number,
    headers: IncomingMessage["headers"],
    sent: number,
    hooked: boolean,
  ): RunEntry | undefined {
    if (status !== 200) return undefined;
    const run = RUN.exec(String(headers["content-location"] ?? ""))?.[1];
    if (run === undefined) {
      this.#deps.report({
        invariant: "wire",
        message: "a run was started without a Content-Location that ends with its id",
        evidence: { what: order.what, headers },
      });
      return undefined;
    }
    return order.note(run, sent, hooked);
  }

  #fine(answer: Answer, what: string): void {
    if (FINE.has(answer.status)) return;
    // The server refuses the request because it is stopping.
    if (answer.status === 503 && (this.#over || this.#deps.mayBeRefused === true)) return;
    // No question is pending any more, or other questions are.
    if (answer.status === 422 && what.endsWith("(resume)")) return;
    this.#deps.report({
      invariant: "wire",
      message: `${what} was answered with ${answer.status}`,
      evidence: answer.json,
    });
  }
}

const kindOf = ({ at }: RequestedRun) => (at === "" ? "/runs" : "…/runs");
