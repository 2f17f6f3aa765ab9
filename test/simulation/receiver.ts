import type { HttpClient, OutgoingRequest, OutgoingResponse } from "../../src/ports/http-client.ts";
import type { Observed } from "./observed.ts";
import type { SimulatedRandom } from "./random.ts";
import type { SimulatedScheduler } from "./scheduler.ts";

/** Receives webhooks, answers some late and some never. Its record outlives every server. */
export class Receiver implements HttpClient {
  readonly #observed: Observed;
  readonly #scheduler: SimulatedScheduler;
  readonly #random: SimulatedRandom;

  constructor(observed: Observed, scheduler: SimulatedScheduler, random: SimulatedRandom) {
    this.#observed = observed;
    this.#scheduler = scheduler;
    this.#random = random;
  }

  resolve(): Promise<readonly string[]> {
    return Promise.resolve(["93.184.216.34"]);
  }

  post({ body, signal }: OutgoingRequest): Promise<OutgoingResponse> {
    const refuses = this.#random.chance(0.1);
    const isDeaf = this.#random.chance(0.1);
    return new Promise((resolve, reject) => {
      const cancel = this.#scheduler.after(this.#random.float() * 5, () => {
        if (isDeaf) return reject(new Error("the connection broke"));
        if (refuses) return resolve({ status: 503, retryAfter: undefined });
        const { run_id, status } = JSON.parse(body) as { run_id: string; status: string };
        this.#observed.tell(run_id, status);
        resolve({ status: 204, retryAfter: undefined });
      });
      signal.addEventListener("abort", () => {
        cancel();
        reject(signal.reason as Error);
      });
    });
  }
}
