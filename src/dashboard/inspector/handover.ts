import type { Message, Model } from "./model.ts";

/** Milliseconds after which a page that says nothing is taken not to listen. */
const PATIENCE = 5_000;

/**
 * Sends the feed on to another page, by the protocol of Stately's inspector: the page says that it is connected (again after each
 * of its reloads), and is sent every actor as it stands, the last events, then what happens.
 */
export class Handover {
  readonly #viewer: URL;
  readonly #model: Model;
  readonly #say: (text: string) => void;
  #window: Window | null = null;
  #connected = false;

  constructor(viewer: string, model: Model, say: (text: string) => void) {
    this.#viewer = new URL(viewer);
    this.#model = model;
    this.#say = say;
    addEventListener("message", (event) => this.#heard(event));
    addEventListener("pagehide", () => this.#post({ type: "@statelyai.disconnected" }));
  }

  get viewer(): string {
    return this.#viewer.href;
  }

  /** In the middle of a click, or the browser opens nothing. */
  open(): void {
    this.#connected = false;
    this.#window = window.open(this.#viewer, "xstateinspector");
    if (this.#window === null) return this.#say("The browser did not open the window.");
    this.#say(`Waiting for ${this.#viewer.host}…`);
    setTimeout(() => {
      if (!this.#connected) this.#say(`${this.#viewer.host} does not answer; what it would show is here.`);
    }, PATIENCE);
  }

  send(message: Message): void {
    if (this.#connected) this.#post(message);
  }

  #heard({ source, origin, data }: MessageEvent): void {
    if (source === null || source !== this.#window || origin !== this.#viewer.origin) return;
    if ((data as { readonly type?: unknown } | null)?.type !== "@statelyai.connected") return;
    this.#connected = true;
    this.#say(`Handed over to ${this.#viewer.host}.`);
    for (const { message } of this.#model.actors.values()) this.#post(message);
    for (const event of this.#model.events) this.#post(event);
  }

  #post(message: object): void {
    this.#window?.postMessage(message, this.#viewer.origin);
  }
}
