import type { TestedServer } from "./conformance-check.ts";
import { MismatchError } from "./mismatch-error.ts";

/** Milliseconds between two polls. */
const POLL_INTERVAL_MS = 20;
/** The largest number of polls, after which the check fails. */
const MAX_POLLS = 500;

/**
 * Runs of the conformance graph `held` on one thread. Each run has a topic, and waits in its second node until the gate of this topic is
 * opened.
 */
export class HeldRuns {
  readonly thread: string;
  readonly #server: TestedServer;

  private constructor(server: TestedServer, thread: string) {
    this.#server = server;
    this.thread = thread;
  }

  /** Creates a thread on the server for these runs. */
  static async on(server: TestedServer): Promise<HeldRuns> {
    const { thread_id } = await server.client.threads.create();
    return new HeldRuns(server, thread_id);
  }

  /** The topic of a run, unique on the server. An opened gate stays open, so a second run with the same topic would not wait. */
  topic(name: string): string {
    return `${this.thread} ${name}`;
  }

  input(name: string): { readonly topic: string } {
    return { topic: this.topic(name) };
  }

  /** The lines that these runs write into `log` of the state, if all of them end, one after the other. */
  log(...names: readonly string[]): string[] {
    return names.flatMap((name) => [`${this.topic(name)} began`, `${this.topic(name)} ended`]);
  }

  async start(name: string, multitaskStrategy?: "reject" | "enqueue" | "interrupt" | "rollback") {
    return this.#server.client.runs.create(this.thread, "held", {
      input: this.input(name),
      ...(multitaskStrategy !== undefined && { multitaskStrategy }),
    });
  }

  /** Waits until the run waits in its second node. */
  async reached(name: string): Promise<void> {
    await waitUntil(this.#server, `the run ${name} waits`, async () => {
      const item = `namespace=conformance.reached&key=${encodeURIComponent(this.topic(name))}`;
      const { status, body } = await this.#server.http.send("GET", `/store/items?${item}`);
      return status === 200 && body !== null;
    });
  }

  async open(name: string): Promise<void> {
    await this.#server.client.store.putItem(["conformance", "gates"], this.topic(name), { open: true });
  }

  async status(run: { readonly run_id: string }): Promise<string> {
    return (await this.#server.client.runs.get(this.thread, run.run_id)).status;
  }
}

/** Polls until `isTrue` resolves with true. @throws MismatchError after {@link MAX_POLLS} polls */
export async function waitUntil(
  server: TestedServer,
  what: string,
  isTrue: () => Promise<boolean>,
): Promise<void> {
  for (let looks = 0; looks < MAX_POLLS; looks++) {
    // oxlint-disable-next-line no-await-in-loop -- each poll decides whether another one is needed
    if (await isTrue()) return;
    // oxlint-disable-next-line no-await-in-loop -- the pause keeps polls from loading the server
    await server.pause(POLL_INTERVAL_MS);
  }
  throw new MismatchError(`it never comes true that ${what}`, what, "not so");
}
