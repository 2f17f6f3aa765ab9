import { useEffect } from "preact/hooks";
import { getDashboardSettings } from "../api/client.ts";
import { useResource } from "../components/use-resource.ts";
import { forgetApiKey, storedApiKey } from "../requests.ts";
import { forgetRunDrafts } from "../threads/run-drafts.ts";

/** The identity of the user of this page; null: the server has no users; undefined: not known. */
let knownIdentity: string | null | undefined;

/** Whether a key may be that of somebody else than the user of this page. */
export async function isKeyOfAnotherUser(key: string): Promise<boolean> {
  const before = knownIdentity;
  const { user } = await getDashboardSettings(key);
  return before === undefined || before !== (user?.identity ?? null);
}

/** Shows who uses this page: the user or, with an API key, the key's first characters. Shows nothing where neither is known. */
export function SignedInUser() {
  const { value: settings, error } = useResource(getDashboardSettings, []);
  useEffect(() => {
    if (settings !== undefined) knownIdentity = settings.user?.identity ?? null;
  }, [settings]);
  const key = storedApiKey();
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
        <button type="button" class="quiet" onClick={signOut}>
          Sign out
        </button>
      )}
    </>
  );
}

/** Returns enough of a key to recognize it, and too little to guess the rest. */
const beginningOf = (key: string): string => `${key.slice(0, Math.min(4, Math.floor(key.length / 4)))}…`;

function signOut(): void {
  forgetApiKey();
  forgetRunDrafts();
  // Loaded anew, the page has no data and no open sockets of the user.
  location.reload();
}
