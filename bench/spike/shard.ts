/* oxlint-disable unicorn/require-post-message-target-origin -- a worker's postMessage, not a window's */
/**
 * A server in which worker threads do the work of shards, behind a main thread that serves HTTP. With `one`, the main
 * thread does everything; `port` forwards over a MessagePort and transfers the buffers; `port2` does the same with two
 * workers; `ring` uses shared memory. The arguments are one of these, and the number of rounds of {@link burn} that
 * stand for a run.
 */
import { fileURLToPath } from "node:url";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { App, us_socket_local_port, type HttpResponse } from "uWebSockets.js";
import { CONSTANT_JSON, customEvent } from "../servers/bodies.ts";
import { ownStats, reportOver } from "../servers/report.ts";
import { Ring, ringMemory, type RingMemory } from "./ring.ts";
import { burn } from "./threads.ts";

type Way = "one" | "port" | "port2" | "ring";

interface Setup {
  readonly way: Way;
  readonly rounds: number;
  readonly toShard: RingMemory;
  readonly toFront: RingMemory;
}

/** The number of events that are sent in one message. */
const EVENTS_PER_MESSAGE = 64;

const ANSWER = Buffer.from(CONSTANT_JSON);

/** Does the work of one request: computes, and passes the response to `send`, whole or as events in several parts. */
function work(rounds: number, events: number, send: (piece: Buffer, last: boolean) => void): void {
  burn(rounds);
  if (events === 0) {
    send(ANSWER, true);
    return;
  }
  for (let id = 0; id < events;) {
    let text = "";
    for (const upTo = Math.min(events, id + EVENTS_PER_MESSAGE); id < upTo; id++)
      text += customEvent(id, 100);
    send(Buffer.from(text), id >= events);
  }
}

/**
 * Encodes a message between the threads: the request's id, then `word`, then the bytes. To the worker, `word` is the
 * number of events to send; back, it is 1 for the last part of a response.
 */
function record(id: number, word: number, bytes: Uint8Array): Buffer {
  const made = Buffer.allocUnsafe(8 + bytes.length);
  made.writeUInt32LE(id, 0);
  made.writeUInt32LE(word, 4);
  made.set(bytes, 8);
  return made;
}

function runShard({ way, rounds, toShard, toFront }: Setup): void {
  if (parentPort === null) throw new Error("a shard runs in a worker");
  const port = parentPort;
  if (way !== "ring") {
    port.on("message", (requests: [number, number, Uint8Array][]) => {
      const out: [number, number, Uint8Array][] = [];
      const moved: ArrayBuffer[] = [];
      const flush = () => {
        if (out.length > 0) port.postMessage(out.splice(0), moved.splice(0));
      };
      for (const [id, events] of requests) {
        work(rounds, events, (piece, last) => {
          const own = Uint8Array.from(piece);
          out.push([id, last ? 1 : 0, own]);
          moved.push(own.buffer);
          if (out.length >= 16) flush();
        });
        // Sent now, so that a response does not wait for other requests that came in the same message.
        flush();
      }
    });
    return;
  }
  const incoming = new Ring(toShard);
  const outgoing = new Ring(toFront);
  const wake = () => {
    if (outgoing.shouldWake()) port.postMessage(0);
  };
  const drain = () =>
    incoming.drain((got) => {
      const id = got.readUInt32LE(0);
      work(rounds, got.readUInt32LE(4), (piece, last) => {
        outgoing.push(record(id, last ? 1 : 0, piece));
        wake();
      });
    });
  port.on("message", drain);
  drain();
}

class Front {
  readonly #open = new Map<number, HttpResponse>();
  #next = 0;

  add(res: HttpResponse): number {
    const id = this.#next++;
    this.#open.set(id, res);
    return id;
  }

  forget(id: number): void {
    this.#open.delete(id);
  }

  /** Writes a part of a response. Backpressure is ignored, because the load process reads as fast as it can. */
  piece(id: number, last: boolean, bytes: Uint8Array): void {
    const res = this.#open.get(id);
    if (res === undefined) return;
    res.cork(() => {
      if (last) res.end(bytes);
      else res.write(bytes);
    });
    if (last) this.#open.delete(id);
  }
}

/** Gathers the requests that arrive in one task of the event loop, and sends them in one message. */
class Outbox {
  readonly #worker: Worker;
  #gathered: [number, number, Uint8Array][] = [];

  constructor(worker: Worker) {
    this.#worker = worker;
  }

  add(id: number, events: number, body: Uint8Array): void {
    if (this.#gathered.push([id, events, body]) > 1) return;
    queueMicrotask(() => {
      this.#worker.postMessage(this.#gathered);
      this.#gathered = [];
    });
  }
}

function runFront(way: Way, rounds: number): void {
  const setup: Setup = { way, rounds, toShard: ringMemory(1 << 20), toFront: ringMemory(1 << 22) };
  const front = new Front();
  const shards = Array.from(
    { length: way === "one" ? 0 : way === "port2" ? 2 : 1 },
    () => new Worker(fileURLToPath(import.meta.url), { workerData: setup }),
  );
  const outboxes = shards.map((shard) => new Outbox(shard));
  const toShard = new Ring(setup.toShard);
  const toFront = new Ring(setup.toFront);

  const forward = (id: number, events: number, body: Uint8Array) => {
    if (way === "one") {
      work(rounds, events, (piece, last) => front.piece(id, last, piece));
    } else if (way === "ring") {
      toShard.push(record(id, events, body));
      if (toShard.shouldWake()) shards[0]?.postMessage(0);
    } else {
      outboxes[id % outboxes.length]?.add(id, events, body);
    }
  };
  for (const shard of shards) {
    shard.on("message", (message: number | [number, number, Uint8Array][]) => {
      if (typeof message !== "number") {
        for (const [id, last, bytes] of message) front.piece(id, last === 1, bytes);
        return;
      }
      toFront.drain((got) => front.piece(got.readUInt32LE(0), got.readUInt32LE(4) === 1, got.subarray(8)));
    });
  }
  if (way === "ring") toFront.drain(() => undefined);

  const app = App();
  app.get("/*", (res) => {
    res.end("{}");
  });
  app.post("/:events", (res, req) => {
    const events = Number(req.getParameter(0));
    const id = front.add(res);
    res.onAborted(() => front.forget(id));
    res.onData((chunk, last) => {
      if (last) forward(id, events, Buffer.from(Buffer.from(chunk)));
    });
  });
  app.listen("127.0.0.1", 0, (socket) => {
    if (socket === false) throw new Error("cannot listen");
    reportOver(us_socket_local_port(socket), ownStats, () => undefined);
  });
}

if (isMainThread) runFront(process.argv[2] as Way, Number(process.argv[3]));
else runShard(workerData as Setup);
