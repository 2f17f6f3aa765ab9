import { signal } from "@preact/signals";
import { showError } from "../app/notices.ts";
import { ApiKeyRequired } from "../api-errors.ts";
import { openSocket, readApiKey, takeKeyOfOtherTab } from "../requests.ts";
import { retryDelayMs } from "./retry-delay.ts";

export type SocketState = "connecting" | "open" | "broken" | "ended" | "refused";

interface SocketOptions {
  readonly path: string;
  /** Returns the query parameters. Called before each connection. */
  readonly query: () => URLSearchParams;
  readonly onOpen?: () => void;
  readonly onMessage: (data: string) => void;
  /** Called when the server has sent all messages and closes the socket (code 1000). */
  readonly onEnd?: () => void;
  /** Called when the thread or run of the stream does not exist or was deleted (code 4404). */
  readonly onMissing?: (reason: string) => void;
}

/**
 * A WebSocket that connects again whenever its connection is lost. It stops when it is closed, and when the server
 * refuses the connection or ends the stream.
 */
export class ReconnectingSocket {
  readonly state = signal<SocketState>("connecting");
  /** The reason why the server refused the connection; empty if it has not. */
  reason = "";
  readonly #options: SocketOptions;
  #socket: WebSocket | null = null;
  #tries = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;
  readonly #online = () => {
    if (this.state.peek() === "broken") this.#connect();
  };

  constructor(options: SocketOptions) {
    this.#options = options;
    addEventListener("online", this.#online);
    this.#connect();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    removeEventListener("online", this.#online);
    this.#socket?.close();
  }

  #connect(): void {
    clearTimeout(this.#timer);
    this.state.value = this.#tries === 0 ? "connecting" : "broken";
    const hasKey = readApiKey() !== null;
    openSocket(this.#options.path, this.#options.query()).then(
      (socket) => this.#attach(socket, hasKey),
      (cause: unknown) => {
        if (cause instanceof ApiKeyRequired) return this.#refuse(cause.message, cause);
        this.#later();
      },
    );
  }

  #attach(socket: WebSocket, hasKey: boolean): void {
    if (this.#closed) return socket.close();
    this.#socket = socket;
    socket.addEventListener("open", () => {
      this.#tries = 0;
      this.state.value = "open";
      this.#options.onOpen?.();
    });
    socket.addEventListener("message", ({ data }) => {
      if (!this.#closed) this.#options.onMessage(data as string);
    });
    socket.addEventListener("close", ({ code, reason }) => {
      if (this.#closed || this.#socket !== socket) return;
      if (code === 4401) return void this.#keyMissing(reason, hasKey);
      if (code === 4404) this.#options.onMissing?.(reason);
      // Codes from 4000 mean that the server refuses this request, so connecting again would not help.
      if (code >= 4000) return this.#refuse(reason, null);
      if (code === 1000) {
        this.state.value = "ended";
        return this.#options.onEnd?.();
      }
      this.#later();
    });
  }

  /** Called when the server has refused the socket. `hasKey`: whether it was opened with a key. */
  async #keyMissing(reason: string, hasKey: boolean): Promise<void> {
    // A new tab has no key before another tab has given it one.
    if (!hasKey && (await takeKeyOfOtherTab())) {
      if (!this.#closed) this.#connect();
    } else this.#refuse(reason, new ApiKeyRequired(reason));
  }

  #later(): void {
    if (this.#closed) return;
    this.state.value = "broken";
    this.#timer = setTimeout(() => this.#connect(), retryDelayMs(this.#tries++));
  }

  #refuse(reason: string, cause: unknown): void {
    this.reason = reason;
    this.state.value = "refused";
    if (cause !== null && !this.#closed) showError(cause);
  }
}
