import { useEffect, useState } from "preact/hooks";
import { getDashboardSettings } from "../api/client.ts";
import type { DashboardSettings } from "../api/records.ts";
import { useResource } from "../components/use-resource.ts";
import { forgetApiKey, readApiKey } from "../requests.ts";
import { ConfirmDialog } from "../components/dialogs.tsx";
import { forgetPrivateTexts, StoredText } from "../stored-text.ts";
import { hasUnsavedInput, reloadPage } from "./page-location.ts";

/** The tenant and the user that this tab has last shown, as JSON. */
const storedUser = new StoredText("heddle.user", { keptFor: "tab" });

const userText = ({ tenant, user }: DashboardSettings): string =>
  JSON.stringify([tenant, user?.identity ?? null]);

/**
 * Returns whether a key belongs to another user or tenant than this tab has last shown. Also true if this tab has shown
 * none.
 */
export async function isKeyOfAnotherUser(key: string): Promise<boolean> {
  const before = storedUser.read();
  return before !== userText(await getDashboardSettings(key));
}

/** Shows the signed-in user or, with an API key, the key's first characters. Shows nothing if there is neither. */
export function SignedInUser() {
  const { value: settings, error } = useResource(getDashboardSettings, []);
  useEffect(() => {
    if (settings !== undefined) storedUser.write(userText(settings));
  }, [settings]);
  const [isAsking, setAsking] = useState(false);
  const key = readApiKey();
  if (settings === undefined && error === null) return null;
  const user = settings?.user ?? null;
  const name = user?.display_name ?? (key === null ? null : `API key ${beginningOf(key)}`);
  if (name === null) return null;
  return (
    <>
      <span class="identity" title={user?.identity}>
        {name}
      </span>
      {key !== null && (
        <button type="button" class="quiet" onClick={() => (hasUnsavedInput() ? setAsking(true) : signOut())}>
          Sign out
        </button>
      )}
      {isAsking && (
        <ConfirmDialog
          title="Sign out?"
          text="Unsaved input will be lost."
          yes="Sign out"
          onYes={signOut}
          onClose={() => setAsking(false)}
        />
      )}
    </>
  );
}

/**
 * Returns the first characters of a key: enough to recognise it, and at most a quarter of it, so that nobody can guess
 * the rest.
 */
const beginningOf = (key: string): string => `${key.slice(0, Math.min(4, Math.floor(key.length / 4)))}…`;

function signOut(): void {
  forgetApiKey();
  forgetPrivateTexts();
  // The reload also discards the data and the open sockets of this user.
  reloadPage();
}
