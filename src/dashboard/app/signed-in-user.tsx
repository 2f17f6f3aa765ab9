import { useEffect } from "preact/hooks";
import { getDashboardSettings } from "../api/client.ts";
import type { DashboardSettings } from "../api/records.ts";
import { useResource } from "../components/use-resource.ts";
import { forgetApiKey, storedApiKey } from "../requests.ts";
import { forgetRunDrafts } from "../threads/run-drafts.ts";

/** The settings that this page has read most recently; undefined before the first read. */
let known: DashboardSettings | undefined;

/** Returns whether a key may belong to a user or a tenant other than that of this page. */
export async function isKeyOfAnotherUser(key: string): Promise<boolean> {
  const before = known;
  const { tenant, user } = await getDashboardSettings(key);
  return before?.tenant !== tenant || before.user?.identity !== user?.identity;
}

/** Shows the signed-in user or, with an API key, the key's first characters. Shows nothing if there is neither. */
export function SignedInUser() {
  const { value: settings, error } = useResource(getDashboardSettings, []);
  useEffect(() => {
    if (settings !== undefined) known = settings;
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

/**
 * Returns the first characters of a key: enough to recognise it, and at most a quarter of it, so that nobody can guess
 * the rest.
 */
const beginningOf = (key: string): string => `${key.slice(0, Math.min(4, Math.floor(key.length / 4)))}…`;

function signOut(): void {
  forgetApiKey();
  forgetRunDrafts();
  // The reload also discards the data and the open sockets of this user.
  location.reload();
}
