import { useEffect } from "preact/hooks";
import { getDashboardSettings } from "../api/client.ts";
import type { DashboardSettings } from "../api/records.ts";
import { useResource } from "../components/use-resource.ts";
import { forgetApiKey, storedApiKey } from "../requests.ts";
import { forgetRunDrafts } from "../threads/run-drafts.ts";

/** The settings that this page has read last; undefined: none. */
let known: DashboardSettings | undefined;

/** Whether a key may be that of somebody else than the user of this page, or of another tenant. */
export async function isKeyOfAnotherUser(key: string): Promise<boolean> {
  const before = known;
  const { tenant, user } = await getDashboardSettings(key);
  return before?.tenant !== tenant || before.user?.identity !== user?.identity;
}

/** Shows who uses this page: the user or, with an API key, the key's first characters. Shows nothing where neither is known. */
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

/** Returns enough of a key to recognize it, and too little to guess the rest. */
const beginningOf = (key: string): string => `${key.slice(0, Math.min(4, Math.floor(key.length / 4)))}…`;

function signOut(): void {
  forgetApiKey();
  forgetRunDrafts();
  // Loaded anew, the page has no data and no open sockets of the user.
  location.reload();
}
