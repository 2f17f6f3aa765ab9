import { pathPrefix } from "./path-prefix.ts";
import { StoredText } from "./stored-text.ts";

/**
 * The key is kept per tab, so that it is gone when the last tab is closed. A new tab, such as one for a link, asks the
 * open tabs of the same server for their key. Only pages of the same origin can ask or answer.
 */

/** Milliseconds for which a new tab waits for an answer of another tab. */
const ANSWER_TIMEOUT_MS = 500;

/** Servers below different path prefixes of the same origin have different keys. */
const CHANNEL_NAME = `heddle.key ${pathPrefix()}`;

/**
 * Whether this tab has had a key, as `yes` or `no`. A tab that has had one does not ask others: the user may have signed
 * out, and the tab may still contain input of that user.
 */
const storedHadKey = new StoredText("heddle.had-key", { keptFor: "tab" });

interface KeyMessage {
  /** The id of the request. */
  readonly id: string;
  /** The key; absent in a request. */
  readonly key?: string;
}

let answering: BroadcastChannel | null = null;

/** Answers the requests of new tabs from now on. `readKey`: returns the valid key of this tab; null if it has none. */
export function answerNewTabs(readKey: () => string | null): void {
  if (answering !== null) return;
  const channel = new BroadcastChannel(CHANNEL_NAME);
  answering = channel;
  channel.addEventListener("message", ({ data }: MessageEvent<KeyMessage>) => {
    const key = readKey();
    if (data.key !== undefined || key === null) return;
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel has one origin
    channel.postMessage({ id: data.id, key } satisfies KeyMessage);
  });
}

/** Notes that this tab has a key, so that it will ask no other tab. */
export function noteKey(): void {
  storedHadKey.write("yes");
}

/** Asks the other tabs for their key. Resolves with null if this tab has had a key, or if no tab answers in time. */
export async function requestKeyOfOtherTab(): Promise<string | null> {
  // Without storage, it is not known whether this tab has had a key before it was reloaded.
  if (storedHadKey.read() === "yes" || !storedHadKey.write("no")) return null;
  const channel = new BroadcastChannel(CHANNEL_NAME);
  const id = String(crypto.getRandomValues(new Uint32Array(2)));
  try {
    return await new Promise((resolve) => {
      channel.addEventListener("message", ({ data }: MessageEvent<KeyMessage>) => {
        if (data.id === id && data.key !== undefined) resolve(data.key);
      });
      setTimeout(() => resolve(null), ANSWER_TIMEOUT_MS);
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel has one origin
      channel.postMessage({ id } satisfies KeyMessage);
    });
  } finally {
    channel.close();
  }
}
