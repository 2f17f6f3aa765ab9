import { textBetween, type JsonText } from "../../codec/large-json.ts";

/** An event of the thread-centric protocol (version 2). */
export interface ProtocolEvent {
  /**
   * The number of the event in its thread. If a fact (an entry of a run's event log) has more events than numbers, the extra events share
   * the fact's last number, and differ in their `id`.
   */
  readonly seq: number;
  readonly id: string;
  readonly method: string;
  /** The channel of the event, to which clients subscribe. A channel that begins with `custom:` is also part of the channel `custom`. */
  readonly channel: string;
  readonly namespace: readonly string[];
  /** The whole event as JSON text. */
  readonly text: JsonText;
}

export const namespaceOf = (ns: string): readonly string[] => (ns === "" ? [] : ns.split("|"));

/** When an event was emitted, in epoch milliseconds, and by which node. */
export interface EventOrigin {
  readonly at: number;
  readonly node?: unknown;
}

/**
 * Collects protocol events and numbers them. Each fact (an entry of a run's event log) has a range of event numbers, which its events get
 * in order.
 */
export class EventNumbering {
  readonly events: ProtocolEvent[] = [];
  #next = 0;
  #last = 0;
  #extra = 0;

  /** Begins the events of a fact, or of the end of a run. They have `width` event numbers, from `first` on. */
  begin(first: number, width: number): void {
    this.#next = first;
    this.#last = first + width - 1;
    this.#extra = 0;
  }

  /** Adds an event of those begun by {@link begin}. */
  put(method: string, ns: string, data: JsonText, { at, node }: EventOrigin, channel = method): void {
    const seq = Math.min(this.#next++, this.#last);
    const extra = this.#next - 1 > this.#last ? ++this.#extra : 0;
    const id = extra === 0 ? String(seq) : `${seq}.${extra}`;
    const namespace = namespaceOf(ns);
    const by = typeof node === "string" ? `,"node":${JSON.stringify(node)}` : "";
    const params = `{"namespace":${JSON.stringify(namespace)},"timestamp":${at}${by},"data":`;
    const before = `{"type":"event","event_id":"${id}","seq":${seq},"method":"${method}","params":${params}`;
    const text = textBetween(before, data, "}}");
    this.events.push({ seq, id, method, channel, namespace, text });
  }
}
