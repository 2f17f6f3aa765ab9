import type { FeedMessage, FeedModel } from "./feed-model.ts";

/** Milliseconds to wait for the viewer's page before the user is told that it does not answer. */
const CONNECT_TIMEOUT_MS = 5_000;

/**
 * Forwards the feed to the page of a viewer, by the protocol of Stately's inspector. The viewer's page announces itself
 * after each load, and then receives the actors and events that the {@link FeedModel} keeps, and all later messages.
 */
export class FeedForwarder {
  readonly #viewer: URL;
  readonly #model: FeedModel;
  readonly #say: (text: string) => void;
  #window: Window | null = null;
  #connected = false;

  constructor(viewer: string, model: FeedModel, say: (text: string) => void) {
    this.#viewer = new URL(viewer);
    this.#model = model;
    this.#say = say;
    addEventListener("message", (event) => this.#receive(event));
    addEventListener("pagehide", () => this.#post({ type: "@statelyai.disconnected" }));
  }

  get viewer(): string {
    return this.#viewer.href;
  }

  /** Opens the viewer's page. MUST be called while a click is handled: otherwise browsers block the pop-up. */
  open(): void {
    this.#connected = false;
    this.#window = window.open(this.#viewer, "xstateinspector");
    if (this.#window === null)
      return this.#say("The browser blocked the window. Allow pop-ups and try again.");
    this.#say(`Waiting for ${this.#viewer.host}…`);
    setTimeout(() => {
      if (!this.#connected) this.#say(`${this.#viewer.host} does not answer. This page shows the same data.`);
    }, CONNECT_TIMEOUT_MS);
  }

  send(message: FeedMessage): void {
    if (this.#connected) this.#post(message);
  }

  #receive({ source, origin, data }: MessageEvent): void {
    if (source === null || source !== this.#window || origin !== this.#viewer.origin) return;
    if ((data as { readonly type?: unknown } | null)?.type !== "@statelyai.connected") return;
    this.#connected = true;
    this.#say(`Forwarding to ${this.#viewer.host}.`);
    for (const { message } of this.#model.actors.values()) this.#post(message);
    for (const event of this.#model.events) this.#post(event);
  }

  #post(message: object): void {
    this.#window?.postMessage(message, this.#viewer.origin);
  }
}
