import { setTimeout as sleep } from "node:timers/promises";
import { Client, ConnectionLost, type Answer, type StreamEnd } from "../client.ts";

/** Milliseconds for which requests are sent again while a shard moves. */
const PATIENCE = 30_000;
const PAUSE = 100;

/** A client that sends a request again that was refused because a shard has no owner at the moment. */
export class PatientClient extends Client {
  override async json(...request: Parameters<Client["json"]>): Promise<Answer> {
    const until = performance.now() + PATIENCE;
    for (;;) {
      try {
        const answer = await super.json(...request);
        if (answer.status !== 503 || performance.now() > until) return answer;
      } catch (error) {
        if (!(error instanceof ConnectionLost) || request[0] !== "GET" || performance.now() > until)
          throw error;
      }
      await sleep(PAUSE);
    }
  }

  override async stream(...request: Parameters<Client["stream"]>): Promise<StreamEnd> {
    const until = performance.now() + PATIENCE;
    for (;;) {
      const end = await super.stream(...request);
      if (end.status !== 503 || performance.now() > until) return end;
      await sleep(PAUSE);
    }
  }
}
