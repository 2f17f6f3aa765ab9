import { textBetween, type JsonText } from "../../codec/json-pieces.ts";

/** An event of the thread-centric protocol (version 2). */
export interface ProtocolEvent {
  /** The thread's event number. Several events of one fact may share the fact's last number; then `id` distinguishes them. */
  readonly seq: number;
  readonly id: string;
  readonly method: string;
  /**
   * The channel of the event. Clients subscribe to channels. A channel that begins with `custom:` belongs to `custom`
   * too.
   */
  readonly channel: string;
  readonly namespace: readonly string[];
  /** The whole event as JSON text. */
  readonly text: JsonText;
}

export const namespaceOf = (ns: string): readonly string[] => (ns === "" ? [] : ns.split("|"));

/** Members of an event in addition to its data: when, and by which node, it was emitted. */
export interface EventOrigin {
  readonly at: number;
  readonly node?: unknown;
}

/**
 * Collects the protocol events of facts and numbers them. A fact takes some of the thread's event numbers, and its
 * events get these numbers in order.
 */
export class EventNumbering {
  readonly events: ProtocolEvent[] = [];
  #next = 0;
  #last = 0;
  #extra = 0;

  /** Begins the events of a fact. The fact takes `width` numbers, from `first` on. */
  begin(first: number, width: number): void {
    this.#next = first;
    this.#last = first + width - 1;
    this.#extra = 0;
  }

  /** Adds an event of the current fact. `data`: JSON text. */
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
