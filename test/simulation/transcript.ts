import { ServiceError } from "../../src/model/errors.ts";
import type { RunRecord } from "../../src/model/run.ts";
import type { ThreadKey } from "../../src/model/thread.ts";
import type { RunLogRegistry } from "../../src/stream/run-log-registry.ts";
import type { Reader } from "../../src/stream/run-reader.ts";
import { type WebSocketFrames, webSocketFormat } from "../../src/stream/websocket-frames.ts";
import { render, createView } from "../../src/stream/rendering.ts";
import type { Crash } from "./disk.ts";

const view = createView(["values", "updates", "messages-tuple", "custom"], false, webSocketFormat(false));

/** The events of a run, as a client has received them over all its reconnections. */
export class Transcript {
  readonly key: ThreadKey;
  readonly run: string;
  /** Event frames by id, in the order of arrival. */
  readonly frames = new Map<number, string>();
  readonly faults: string[] = [];
  /** The number of frames received before a power cut: unsynced events may be gone from the log. */
  uncertain = 0;
  ended = false;
  /** Whether the client was told that the thread was deleted, before it had read all events. */
  isThreadDeleted = false;
  #reader: Reader | undefined;
  #left = 0;

  constructor(key: ThreadKey, run: string) {
    this.key = key;
    this.run = run;
  }

  get last(): number {
    return [...this.frames.keys()].at(-1) ?? -1;
  }

  /** Reads up to `pieces` more pieces, then disconnects. An existing reader continues. */
  read(runLogs: RunLogRegistry, record: RunRecord, pieces: number): void {
    this.#left = pieces;
    if (this.#reader !== undefined) return;
    const reader = runLogs.follow(this.key, record, { after: this.last });
    this.#reader = reader;
    const more = () => {
      void this.#pull(reader).catch((thrown: unknown) => {
        // Errors of a dead server's reader do not count, nor do those after a stopping server has cut its streams: its storage is closed.
        if (this.#reader !== reader || reader.isCut) return;
        if (thrown instanceof ServiceError && thrown.code === "thread.not_found") this.isThreadDeleted = true;
        else this.faults.push(String(thrown));
      });
    };
    reader.onReady(more);
    more();
  }

  async #pull(reader: Reader): Promise<void> {
    while (this.#reader === reader) {
      const piece = await reader.next();
      if (this.#reader !== reader || piece === "wait") return;
      if (piece === "end") this.ended = true;
      if (typeof piece === "string") return this.#close();
      this.#take(await render(piece, view));
      if (--this.#left <= 0) return this.#close();
    }
  }

  #take({ messages }: WebSocketFrames): void {
    for (const message of messages) {
      const text = String(message);
      const id = Number((JSON.parse(text) as { id: string }).id);
      if (id <= this.last) this.faults.push(`event ${id} came after event ${this.last}`);
      const before = this.frames.get(id);
      if (before !== undefined) this.faults.push(`event ${id} came twice`);
      this.frames.set(id, text);
    }
  }

  #close(): void {
    this.#reader?.close();
    this.#reader = undefined;
  }

  /** The server is gone. */
  cut(how: Crash | "stop"): void {
    this.#reader = undefined;
    if (how === "power") this.uncertain = this.frames.size;
  }

  /** Returns all of the run's events as a new reader gets them. */
  static async replay(
    runLogs: RunLogRegistry,
    key: ThreadKey,
    record: RunRecord,
  ): Promise<Map<number, string>> {
    const all = new Transcript(key, record.run_id);
    const reader = runLogs.follow(key, record, { after: -1 });
    for (;;) {
      const piece = await reader.next();
      if (typeof piece === "string") break;
      all.#take(await render(piece, view));
    }
    reader.close();
    return all.frames;
  }
}
