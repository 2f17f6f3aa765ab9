import { setTimeout as sleep } from "node:timers/promises";
import { Client, ConnectionLost, type Answer, type Frame, type StreamEnd } from "../client.ts";

/** Milliseconds for which requests are sent again while a shard moves. */
const PATIENCE = 30_000;
const PAUSE = 100;

/** A client that sends a request again that was refused because a shard has no owner at the moment, and goes on with a broken stream. */
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

  /** A stream that is read and breaks goes on after the last event, as in the SDKs: its process may have handed its shard over. */
  override async stream(...request: Parameters<Client["stream"]>): Promise<StreamEnd> {
    const [method, path, body, headers, onHead, onFrame, signal] = request;
    const until = performance.now() + PATIENCE;
    let after = headers["last-event-id"];
    const take = (frame: Frame) => {
      after = String(frame.id);
      onFrame(frame);
    };
    for (;;) {
      const from = after === undefined ? headers : { ...headers, "last-event-id": after };
      const end = await super.stream(method, path, body, from, onHead, take, signal);
      const isOver = end.status !== 503 && (end.how !== "cut" || method !== "GET");
      if (isOver || performance.now() > until) return end;
      await sleep(PAUSE);
    }
  }
}
