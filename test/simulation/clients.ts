import type { RunDraft } from "../../actors/thread-system-interface.ts";
import { ServiceError } from "../../src/model/errors.ts";
import { createMonotonicIds } from "../../src/model/ids.ts";
import { type Durability, multitaskStrategies, type RunKwargs } from "../../src/model/run.ts";
import type { TemporaryKind, ThreadKey } from "../../src/model/thread.ts";
import type { RunRequest } from "../../src/service/run-draft.ts";
import type { SimulatedClock } from "./clock.ts";
import type { Plan } from "./graph.ts";
import type { Observed } from "./observed.ts";
import type { SimulatedRandom } from "./random.ts";
import type { Life } from "./server.ts";
import { Machines } from "./machines.ts";
import { Transcript } from "./transcript.ts";

const temporaries: readonly TemporaryKind[] = ["background", "bound", "free"];
const durabilities: readonly Durability[] = ["async", "async", "sync", "exit"];

const HOOK = "http://hook.test/";

/** The largest number of crons in a world. Each fires every minute. */
const MOST_CRONS = 3;

interface Deps {
  readonly observed: Observed;
  readonly random: SimulatedRandom;
  readonly clock: SimulatedClock;
  /** The running server; undefined between two lives. */
  readonly life: () => Life | undefined;
}

/** The requests of clients over all lives of the server, and the answers. */
export class Clients {
  readonly threads: ThreadKey[] = [];
  readonly transcripts = new Map<string, Transcript>();
  readonly machines: Machines;
  readonly #deps: Deps;
  #crons = 0;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.machines = new Machines({
      ...deps,
      newId: () => this.#newId(),
      acknowledged: (promise, then) => this.#acknowledged(promise, then),
    });
  }

  get #life(): Life {
    const life = this.#deps.life();
    if (life === undefined) throw new TypeError("The server is down");
    return life;
  }

  /** Sends one random request. */
  ask(): void {
    try {
      this.#ask();
    } catch (thrown) {
      // Reads of stored data must always work.
      this.#deps.observed.violation("I1", `a read failed: ${String(thrown)}`);
    }
  }

  /** Deletes the crons, which would fire forever. */
  async end(): Promise<void> {
    await this.machines.end();
    const { crons } = this.#life.service;
    const all = await crons.search("_", { limit: 100, offset: 0 });
    for (const { cron_id } of all.crons) await crons.delete("_", cron_id);
  }

  #ask(): void {
    const { random } = this.#deps;
    if (random.chance(0.2)) return this.machines.ask();
    const roll = random.float();
    if (this.threads.length === 0 || (roll < 0.1 && this.threads.length < 5)) this.#createThread();
    else if (roll < 0.47) this.#createRun();
    else if (roll < 0.49) this.#createCron();
    else if (roll < 0.52) this.#createBatch();
    else if (roll < 0.6) this.#createAlone();
    else if (roll < 0.7) this.#cancel();
    else if (roll < 0.78) this.#update();
    else this.#read();
  }

  /** Only acknowledgements of the current life count; a dead server acknowledges nothing. */
  #acknowledged<T>(promise: Promise<T>, then: (value: T) => void): void {
    const { observed, life: now } = this.#deps;
    const life = now();
    promise.then(
      (value) => {
        if (now() === life) then(value);
      },
      (thrown: unknown) => {
        if (now() !== life || thrown instanceof ServiceError) return;
        observed.violation("errors", `a client met ${String(thrown)}`);
      },
    );
  }

  readonly #newId = createMonotonicIds(
    () => this.#deps.clock.now(),
    (count) => this.#deps.random.bytes(count),
  );

  #createThread(): void {
    const key = { tenant: "_", thread: this.#newId() };
    const made = this.#life.system.create(key, { metadata: { graph_id: "sim" }, if_exists: "raise" });
    this.#acknowledged(made, () => {
      this.threads.push(key);
      this.#deps.observed.threads.add(key.thread);
    });
  }

  #createRun(): void {
    const { observed, random } = this.#deps;
    const key = random.pick(this.threads);
    const draft = this.#draft();
    if (draft.multitask_strategy === "rollback") observed.rollback(key.thread);
    const admitted = this.#life.system.admit(key, draft);
    this.#acknowledged(admitted, () => observed.admit(key, draft.run_id));
  }

  /** Creates a stateless run. */
  #createAlone(): void {
    const { observed, random } = this.#deps;
    const key = { tenant: "_", thread: this.#newId() };
    const draft = this.#draft();
    const temporary = random.pick(temporaries);
    const stateless = { key, temporary, life: observed.life, acknowledged: false };
    observed.stateless.set(draft.run_id, stateless);
    const admitted = this.#life.system.admit(key, { ...draft, create: { metadata: {}, temporary } });
    this.#acknowledged(admitted, () => (stateless.acknowledged = true));
  }

  /** Creates a batch of stateless runs: all of them are admitted, or none. */
  #createBatch(): void {
    const { observed, random } = this.#deps;
    const requests = Array.from({ length: 2 + random.below(4) }, () => this.#request());
    const batch = observed.batches.asked(requests.map(({ metadata }) => String(metadata?.["batch"])));
    const started = this.#life.service.runs.startBatch("_", requests);
    started.catch(() => (batch.state = "refused"));
    this.#acknowledged(started, (runs) => {
      batch.state = "acknowledged";
      for (const { run_id, thread_id: thread } of runs) {
        const key = { tenant: "_", thread };
        observed.stateless.set(run_id, {
          key,
          temporary: "background",
          life: observed.life,
          acknowledged: true,
        });
      }
    });
  }

  #createCron(): void {
    const { random } = this.#deps;
    if (this.#crons >= MOST_CRONS) return;
    this.#crons++;
    const { metadata: _, assistant_id, ...run } = this.#request();
    const asked = { assistant_id, schedule: "* * * * *", run };
    const { crons } = this.#life.service;
    const made = random.chance(0.5)
      ? crons.createOn(random.pick(this.threads), asked)
      : crons.create("_", asked);
    this.#acknowledged(made, () => undefined);
  }

  /** Builds a request for the service. The server chooses the run's id. */
  #request(): RunRequest {
    const { random } = this.#deps;
    const name = this.#newId();
    return {
      assistant_id: "sim",
      input: { plan: this.#plan(name) },
      metadata: { batch: name },
      origin: "http" as const,
      multitask_strategy: "enqueue",
      durability: random.pick(durabilities),
      ...(random.chance(0.5) && { webhook: HOOK }),
    };
  }

  #plan(run: string): Plan {
    const { random } = this.#deps;
    return {
      run,
      tokens: random.below(6),
      ask: random.chance(0.2),
      fails: random.chance(0.1),
      deaf: random.chance(0.1),
    };
  }

  #draft(): RunDraft {
    const { random } = this.#deps;
    const run = this.#newId();
    const plan = this.#plan(run);
    const answers = random.chance(0.3);
    const goesOn = !answers && random.chance(0.15);
    const durability = random.pick(durabilities);
    const webhook = random.chance(0.5) ? HOOK : null;
    const kwargs = {
      input: answers || goesOn ? null : { plan },
      command: answers ? { resume: run } : null,
      config: { configurable: {}, metadata: {} },
      context: {},
      durability,
      webhook,
      stream_mode: ["values"],
      interrupt_before: random.chance(0.05) ? "*" : null,
      interrupt_after: null,
    } as unknown as RunKwargs;
    const multitask_strategy = random.pick(multitaskStrategies);
    const draft = {
      run_id: run,
      assistant_id: "a",
      graph_id: "sim",
      metadata: {},
      kwargs,
      multitask_strategy,
      origin: "http" as const,
    };
    return random.chance(0.15) ? { ...draft, delay: 1 + random.below(200) } : draft;
  }

  #cancel(): void {
    const { random, observed } = this.#deps;
    // What a machine has acknowledged is not withdrawn.
    const isOther = (_: string, key: ThreadKey) => !this.machines.has(key);
    const isOpen = (id: string, key: ThreadKey) => isOther(id, key) && !observed.ended.has(id);
    const run = this.#someRun(isOpen) ?? this.#someRun(isOther);
    if (run === undefined) return;
    const [id, key] = run;
    const action = random.chance(0.3) ? "rollback" : "interrupt";
    if (action === "rollback") observed.rollable.add(id);
    this.#acknowledged(this.#life.system.cancel(key, id, action), () => undefined);
  }

  /** Updates a thread's state, sometimes on a new branch. */
  #update(): void {
    const { random, observed } = this.#deps;
    const key = random.pick(this.threads);
    const write = { values: { log: [`${this.#newId()} updated`] }, as_node: "first", at: "" };
    const copies = observed.updates.filter(({ thread }) => thread === key.thread);
    const from = copies.length > 0 && random.chance(0.3) ? random.pick(copies).checkpoint : null;
    const updated = this.#life.system.update(key, { from, ns: "", supersteps: [[write]] });
    this.#acknowledged(updated, ({ id }) => observed.updates.push({ thread: key.thread, checkpoint: id }));
  }

  #read(): void {
    const run = this.#someRun();
    if (run === undefined) return;
    const [id, key] = run;
    const transcript = this.transcripts.get(id) ?? new Transcript(key, id);
    this.transcripts.set(id, transcript);
    const { storage, runLogs } = this.#life;
    this.#acknowledged(Promise.resolve(storage.journal.run(key, id)), (record) => {
      if (record !== undefined) transcript.read(runLogs, record, 1 + this.#deps.random.below(6));
    });
  }

  #someRun(isWanted: (id: string, key: ThreadKey) => boolean = () => true): [string, ThreadKey] | undefined {
    const { admitted, stateless } = this.#deps.observed;
    const runs: [string, ThreadKey][] = [...admitted].filter(([id, key]) => isWanted(id, key));
    for (const [id, { key, acknowledged }] of stateless)
      if (acknowledged && isWanted(id, key)) runs.push([id, key]);
    return runs.length === 0 ? undefined : runs[this.#deps.random.below(runs.length)];
  }
}
