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
    storeApiKey(secret.current?.value ?? "");
    try {
      await fetchJson("assistants/count", { body: {} });
      onEntered();
    } catch (cause) {
      // The key is valid, but the user may not make this request.
      if (cause instanceof RequestError && cause.status === 403) return onEntered();
      if (!(cause instanceof ApiKeyRequired)) return setWrong(errorMessage(cause));
      setWrong("The server does not know this key or token.");
      secret.current?.select();
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
