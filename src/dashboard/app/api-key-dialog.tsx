import { createRef } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiKeyRequired, RequestError } from "../api-errors.ts";
import { fetchJson, storeApiKey } from "../requests.ts";
import { errorMessage } from "./notices.ts";

/** Asks for the API key, or the token of a user, and checks it with a request. */
export function ApiKeyDialog({ onEntered }: { readonly onEntered: () => void }) {
  const [wrong, setWrong] = useState("");
  const secret = createRef<HTMLInputElement>();
  useEffect(() => secret.current?.focus(), []);
  const submit = async () => {
    const key = secret.current?.value.trim() ?? "";
    const enter = () => {
      storeApiKey(key);
      onEntered();
    };
    // Browsers refuse to send other characters in a header.
    if (!/^[\x20-\x7e]+$/.test(key))
      return setWrong("A key or token consists of letters from A to Z, digits and signs of ASCII.");
    try {
      await fetchJson("assistants/count", { body: {}, key });
      enter();
    } catch (cause) {
      // The key is valid, but the user may not make this request.
      if (cause instanceof RequestError && cause.status === 403) return enter();
      setWrong(errorMessage(cause));
      if (cause instanceof ApiKeyRequired) secret.current?.select();
    }
  };
  return (
    <main class="lock" id="main">
      <form
        class="card"
        aria-labelledby="lock-title"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <h1 id="lock-title">Key or token required</h1>
        <p class="dim">This server requires an API key, or a user's token. It is stored in this tab only.</p>
        <input type="text" name="username" autoComplete="username" value="heddle" hidden />
        <label for="secret">API key or token</label>
        <input id="secret" ref={secret} type="password" autoComplete="current-password" required />
        {wrong !== "" && (
          <p class="bad" role="alert">
            {wrong}
          </p>
        )}
        <button class="primary">Enter</button>
      </form>
    </main>
  );
}
