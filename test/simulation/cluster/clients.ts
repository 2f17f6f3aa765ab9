import type { SimulatedRandom } from "../random.ts";
import type { Universe } from "./machine.ts";
import type { SimulatedNode } from "./node.ts";
import type { Answer } from "./peer-network.ts";

/** Milliseconds before a client repeats a request. */
const REPEAT_MS = 150;
/** The shortest and the longest time in milliseconds after which a client no longer waits for an answer. */
const SHORTEST_WAIT_MS = 300;
const LONGEST_WAIT_MS = 4_000;
/** The number of attempts after which a client gives a request up once the faults have stopped. */
const MOST_ATTEMPTS = 100;

/** What clients know of a register: a list of items in a shard. */
interface Register {
  readonly name: string;
  /** The items whose writes were acknowledged. */
  readonly acknowledged: Set<string>;
  /** The longest list that a client has read. */
  seen: readonly string[];
}

interface ClientsDeps {
  readonly universe: Universe;
  readonly registers: readonly string[];
  /** The nodes that clients know. */
  nodes(): readonly SimulatedNode[];
  /** True: nothing crashes, so no request may fail. */
  readonly isOrderly: boolean;
  violation(code: string, message: string): void;
}

/** Clients that write numbered items through any node, and read them back. */
export class ClusterClients {
  readonly registers: readonly Register[];
  readonly counts = { acknowledged: 0, unknown: 0, reads: 0, refusedReads: 0, repeated: 0 };
  /** The requests that have neither been answered nor broken off. */
  pending = 0;
  /** The clients that still do something. */
  working = 0;
  /** True: no further requests are begun. */
  isOver = false;
  readonly #deps: ClientsDeps;
  #items = 0;

  constructor(deps: ClientsDeps) {
    this.#deps = deps;
    this.registers = deps.registers.map((name) => ({ name, acknowledged: new Set(), seen: [] }));
  }

  get #random(): SimulatedRandom {
    return this.#deps.universe.random;
  }

  /** `idleMs`: the longest time that each client waits between two requests. */
  start(count: number, idleMs: number): void {
    for (let client = 0; client < count; client++) void this.#work(idleMs);
  }

  async #work(idleMs: number): Promise<void> {
    this.working++;
    while (!this.isOver) {
      await this.#pause(this.#random.float() * idleMs);
      // Half of the requests are for one register, so that faults of its shard are noticed soon.
      const register = this.#random.pick(
        this.#random.chance(0.5) ? this.registers.slice(0, 1) : this.registers,
      );
      await (this.#random.chance(0.55) ? this.#write(register) : this.#read(register));
    }
    this.working--;
  }

  /** Half of the clients send a key of their own, and repeat a request until it is acknowledged. */
  async #write(register: Register): Promise<void> {
    const item = `i${this.#items++}`;
    const key = this.#random.chance(0.5) ? `key of ${item}` : undefined;
    for (let attempt = 0; ; attempt++) {
      const isAcknowledged = this.#ask("POST", register.name, item, key).then((answer) => {
        if (answer?.status !== 200) return false;
        if (!register.acknowledged.has(item)) this.counts.acknowledged++;
        register.acknowledged.add(item);
        return true;
      });
      if (await this.#waitFor(isAcknowledged)) return;
      if (key === undefined || (this.isOver && attempt > MOST_ATTEMPTS)) {
        this.counts.unknown++;
        return;
      }
      this.counts.repeated++;
      await this.#pause(REPEAT_MS);
    }
  }

  async #read(register: Register): Promise<void> {
    const expected = new Set(register.acknowledged);
    const { seen } = register;
    const isRead = this.#ask("GET", register.name, "").then((answer) => {
      if (answer?.status !== 200) {
        this.counts.refusedReads++;
        return false;
      }
      this.counts.reads++;
      this.check(register, listOf(answer.body), expected, seen);
      return true;
    });
    await this.#waitFor(isRead);
  }

  /** Waits until a request has ended, or until the client loses its patience: then false. */
  #waitFor(request: Promise<boolean>): Promise<boolean> {
    const ms = SHORTEST_WAIT_MS + this.#random.float() * (LONGEST_WAIT_MS - SHORTEST_WAIT_MS);
    return Promise.race([request, this.#pause(ms).then(() => false)]);
  }

  /** Checks a list that was read: it has all items of `expected`, and begins with the list `seen`. */
  check(
    register: Register,
    list: readonly string[],
    expected: ReadonlySet<string>,
    seen: readonly string[],
  ): void {
    const { violation } = this.#deps;
    const found = new Set(list);
    const missing = [...expected].filter((item) => !found.has(item));
    if (missing.length > 0)
      violation(
        "C4",
        `a read of ${register.name} has not ${missing.slice(0, 3).join()}, acknowledged before`,
      );
    if (seen.some((item, i) => list[i] !== item))
      violation("C4", `a read of ${register.name} is older than one that had ended before it began`);
    if (found.size !== list.length) violation("C2", `${register.name} has an item twice: ${twice(list)}`);
    if (list.length > register.seen.length) register.seen = list;
  }

  /** Sends a request to any node. Undefined: the node cannot be reached, or the connection has broken off. */
  #ask(method: "GET" | "POST", register: string, item: string, key?: string): Promise<Answer | undefined> {
    const { universe, nodes, isOrderly, violation } = this.#deps;
    const { scheduler } = universe;
    const processes = nodes()
      .filter((node) => node.isOpen)
      .flatMap(({ listening }) => listening);
    return new Promise((ended) => {
      this.pending++;
      let isOver = false;
      let isAnswered = false;
      const resolve = (answer: Answer | undefined): void => {
        if (!isOver) this.pending--;
        isOver = true;
        ended(answer);
      };
      const later = (act: () => void): void => void scheduler.after(0.1 + this.#random.float() * 2, act);
      if (processes.length === 0) return later(() => resolve(undefined));
      const process = this.#random.pick(processes);
      later(() => {
        // It accepts no connection any more. Another process of the node may.
        if (process.scheduler.isDead || process.isReleased) return later(() => resolve(undefined));
        process.onExit(() => {
          if (isOrderly && !isOver && !isAnswered) violation("C6", `a request for ${register} broke off`);
          later(() => resolve(undefined));
        });
        process.scheduler.run(
          () =>
            void process.answerClient(method, register, item, key).then((answer) => {
              // A process that has ended sends nothing.
              if (process.scheduler.isDead) return;
              isAnswered = true;
              if (isOrderly && answer.status !== 200)
                violation("C6", `a request for ${register} was refused: ${answer.status} ${answer.body}`);
              later(() => resolve(answer));
            }),
        );
      });
    });
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#deps.universe.scheduler.after(ms, resolve));
  }
}

export const listOf = (body: string): readonly string[] => (body === "" ? [] : body.split(","));

const twice = (list: readonly string[]): string => list.filter((item, i) => list.indexOf(item) !== i).join();
