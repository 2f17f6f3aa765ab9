import { Agent, request } from "node:http";
import type { Operation } from "./api.ts";
import { filled, type Request, type Sent } from "./requests.ts";
import type { KnownId } from "./values.ts";

/** A finding. fast-check shrinks the requests that led to it. */
export class Finding extends Error {
  override readonly name = "Finding";
}

interface Answer {
  /** 0: the test did not wait for the end of the answer. */
  readonly status: number;
  readonly headers: { readonly [name: string]: string | readonly string[] | undefined };
  readonly text: string;
}

const NOBODY = "00000000-0000-4000-8000-000000000000";
/** The number of ids kept of each kind. */
const REMEMBERED = 8;
/** Milliseconds to wait for an answer that may depend on a run. */
const PATIENCE = 150;
/** Milliseconds: the limit for any other answer. */
const LONGEST = 20_000;
const REFUSALS = new Set([400, 401, 403, 404, 405, 409, 413, 415, 422, 429]);
const WAITS = /stream|\/wait$|\/join$|\/commands$|cancel/;

/** A client that remembers ids from the answers and checks each answer. */
export class Session {
  /** The number of answers by status. */
  readonly statuses = new Map<number, number>();
  readonly #url: URL;
  readonly #errors: readonly string[];
  readonly #ids = new Map<string, string[]>();
  readonly #agent = new Agent({ keepAlive: true });
  #seen = 0;

  /** `errors`: the server's log lines of that level. */
  constructor(url: string, errors: readonly string[]) {
    this.#url = new URL(url);
    this.#errors = errors;
  }

  close(): void {
    this.#agent.destroy();
  }

  idOf = ({ kind, index }: KnownId): string => {
    const known = this.#ids.get(kind) ?? [];
    return known[index % Math.max(known.length, 1)] ?? NOBODY;
  };

  async send(given: Request): Promise<void> {
    const sent = filled(given, this.idOf);
    const told = `${sent.method} ${sent.target}\n${JSON.stringify(sent.headers)}\n${(sent.body ?? "").slice(0, 2_000)}`;
    const answer = await this.#ask(sent, WAITS.test(given.operation.path) ? PATIENCE : LONGEST, told);
    this.statuses.set(answer.status, (this.statuses.get(answer.status) ?? 0) + 1);
    const fault = this.#faultOf(given.operation, sent, answer);
    if (fault !== undefined)
      throw new Finding(`${fault}\n${told}\n-> ${answer.status} ${answer.text.slice(0, 2_000)}`);
    this.quiet(told);
    if (answer.status === 200) await this.#learn(given.operation, sent, answer, told);
  }

  /** @throws Finding if the server has logged an error */
  quiet(told: string): void {
    const first = this.#errors[this.#seen];
    this.#seen = this.#errors.length;
    if (first !== undefined)
      throw new Finding(`the server logged an error: ${first.slice(0, 3_000)}\n${told}`);
  }

  #faultOf(operation: Operation, sent: Sent, { status, headers, text }: Answer): string | undefined {
    if (status === 0) return undefined;
    if (typeof headers["x-request-id"] !== "string" && status !== 204) return "the answer has no request id";
    if (status >= 400) {
      if (!REFUSALS.has(status)) return `the status is ${status}`;
      if (sent.method === "HEAD") return undefined;
      const { detail } = JSON.parse(text) as { detail?: unknown };
      return typeof detail === "string" && detail !== "" ? undefined : "a refusal has no detail";
    }
    if (sent.method !== operation.method) return undefined;
    return operation.fault(status, String(headers["content-type"] ?? ""), text);
  }

  async #learn(operation: Operation, sent: Sent, { text }: Answer, told: string): Promise<void> {
    if (operation.method !== sent.method || !/^[[{\n]/.test(text)) return;
    this.#remember(JSON.parse(text), 0);
    if (operation.path !== "/threads" || /"ttl"/.test(sent.body ?? "")) return;
    // An acknowledged thread must exist.
    const { thread_id } = JSON.parse(text) as { thread_id: string };
    const read = await this.#ask(
      { method: "GET", target: `/threads/${thread_id}`, headers: {}, body: undefined },
      LONGEST,
      told,
    );
    if (read.status !== 200)
      throw new Finding(`the thread ${thread_id} was acknowledged and is not there\n${told}`);
  }

  /** Remembers the ids in an answer, by their names. */
  #remember(value: unknown, depth: number): void {
    if (typeof value !== "object" || value === null || depth > 4) return;
    for (const [name, member] of Object.entries(value).slice(0, 50)) {
      const kind = /^(thread|run|assistant|checkpoint|cron)_id$/.exec(name)?.[1];
      if (kind !== undefined && typeof member === "string") this.#know(kind, member);
      else if (name === "id" && typeof member === "string" && member.length === 32)
        this.#know("interrupt", member);
      else this.#remember(member, depth + 1);
    }
  }

  #know(kind: string, id: string): void {
    const known = this.#ids.get(kind) ?? [];
    if (!known.includes(id)) known.push(id);
    if (known.length > REMEMBERED) known.shift();
    this.#ids.set(kind, known);
  }

  #ask({ method, target, headers, body }: Sent, patience: number, told: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const bytes = body === undefined ? undefined : Buffer.from(body);
      const asked = request({
        agent: this.#agent,
        host: this.#url.hostname,
        port: this.#url.port,
        method,
        path: target,
        headers: { ...headers, ...(bytes !== undefined && { "content-length": bytes.length }) },
      });
      const timer = setTimeout(() => {
        asked.destroy();
        if (patience < LONGEST) resolve({ status: 0, headers: {}, text: "" });
        else reject(new Finding(`no answer within ${LONGEST} ms\n${told}`));
      }, patience);
      asked.on("response", (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (piece: string) => (text += piece));
        response.on("end", () => {
          clearTimeout(timer);
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
        });
        response.on("error", () => resolve({ status: 0, headers: {}, text }));
      });
      asked.on("error", (cause) => {
        clearTimeout(timer);
        reject(new Finding(`the connection broke: ${String(cause)}\n${told}`));
      });
      asked.end(bytes);
    });
  }
}
