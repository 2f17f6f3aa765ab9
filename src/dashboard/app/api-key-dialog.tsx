import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiKeyRequired, RequestError } from "../api-errors.ts";
import { useModal } from "../components/dialogs.tsx";
import { fetchJson, storeApiKey, storeApiKeyForReload } from "../requests.ts";
import { forgetPrivateTexts } from "../stored-text.ts";
import { errorMessage } from "./notices.ts";
import { reloadPage } from "./page-location.ts";
import { isKeyOfAnotherUser } from "./signed-in-user.tsx";

interface ApiKeyDialogProps {
  /** Whether the key has expired while the page was in use. The page then stays visible behind the dialog. */
  readonly isExpired: boolean;
  readonly onEntered: () => void;
}

/** Asks for an API key or a user token, checks it with a request, and stores it. */
export function ApiKeyDialog({ isExpired, onEntered }: ApiKeyDialogProps) {
  const [wrong, setWrong] = useState("");
  const secret = useRef<HTMLInputElement>(null);
  useEffect(() => secret.current?.focus(), []);
  const enter = async (key: string) => {
    if (await isKeyOfAnotherUser(key)) {
      forgetPrivateTexts();
      if (isExpired) {
        // After a reload, no data and no request of the previous user remain.
        storeApiKeyForReload(key);
        return reloadPage();
      }
    }
    storeApiKey(key);
    onEntered();
  };
  const submit = async () => {
    const key = secret.current?.value.trim() ?? "";
    // The key is sent in a header, which cannot contain all other characters.
    if (!/^[\x20-\x7e]+$/.test(key))
      return setWrong("An API key or user token may contain only ASCII characters.");
    try {
      await fetchJson("assistants/count", { body: {}, key }).catch((cause: unknown) => {
        // With 403, the key is valid, but the access rules forbid its user this request.
        if (!(cause instanceof RequestError && cause.status === 403)) throw cause;
      });
      await enter(key);
    } catch (cause) {
      setWrong(errorMessage(cause));
      if (cause instanceof ApiKeyRequired) secret.current?.select();
    }
  };
  const form = (
    <form
      class={isExpired ? "" : "card"}
      aria-labelledby="lock-title"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <h1 id="lock-title">API key or user token required</h1>
      <p class="dim">
        {isExpired
          ? "The server no longer accepts the API key or user token of this tab. Enter another one to continue; the page keeps your input."
          : "This server requires an API key or a user token. It is stored in this tab only, and given to the tabs that you open meanwhile."}
      </p>
      <input type="text" name="username" autoComplete="username" value="heddle" hidden />
      <label for="secret">API key or user token</label>
      <input id="secret" ref={secret} type="password" autoComplete="current-password" required />
      {wrong !== "" && (
        <p class="bad" role="alert">
          {wrong}
        </p>
      )}
      <button class="primary">Sign in</button>
    </form>
  );
  if (isExpired) return <BlockingDialog>{form}</BlockingDialog>;
  return (
    <main class="lock" id="main">
      {form}
    </main>
  );
}

/** A modal dialog that the user cannot dismiss. */
function BlockingDialog({ children }: { readonly children: ComponentChildren }) {
  const { dialog, isRemoved } = useModal();
  return (
    <dialog
      ref={dialog}
      class="lock-over"
      aria-labelledby="lock-title"
      onCancel={(event) => event.preventDefault()}
      // Some browsers close a dialog when Escape is pressed twice, although `cancel` was prevented. The dialog is
      // opened again.
      onClose={() => !isRemoved.current && dialog.current?.showModal()}
    >
      {children}
    </dialog>
  );
}
