import { useState } from "preact/hooks";
import { Dialog } from "../components/dialogs.tsx";
import { useKeyPress } from "../components/use-key-press.ts";
import { navigateTo } from "./page-location.ts";
import { DASHBOARD_PAGES } from "./dashboard-pages.ts";

/** The page that is opened by typing `g` and then a letter, by the letter. */
const PAGES_BY_KEY = new Map<string, string>([
  ...DASHBOARD_PAGES.map(({ key, name }) => [key, name] as const),
  ["n", "new"],
]);

const KEYS: readonly (readonly [place: string, keys: readonly (readonly [keys: string, what: string])[]])[] =
  [
    [
      "Everywhere",
      [
        ["?", "keyboard shortcuts"],
        ...[...PAGES_BY_KEY].map(
          ([key, page]) => [`g ${key}`, page === "new" ? "new thread" : page] as const,
        ),
      ],
    ],
    [
      "Threads",
      [
        ["↓ ↑", "next and previous thread in the list"],
        ["Home End", "beginning and end of the conversation"],
      ],
    ],
    [
      "Text fields",
      [
        ["Enter", "send"],
        ["Shift Enter", "new line"],
      ],
    ],
    [
      "Inbox",
      [
        ["j ↓", "next question"],
        ["k ↑", "previous question"],
        ["Ctrl Enter", "send the answer"],
        ["Esc", "leave the field; close the question"],
      ],
    ],
    [
      "Timeline of a run",
      [
        ["j ↓", "next task"],
        ["k ↑", "previous task"],
        ["+ −", "zoom in, zoom out"],
        ["/", "search"],
        ["Esc", "close the task"],
      ],
    ],
  ];

/**
 * A button that lists the keyboard shortcuts. Also handles the shortcuts of all pages: `?`, and `g` followed by a
 * letter.
 */
export function KeyboardShortcuts() {
  const [isOpen, setOpen] = useState(false);
  const [isGoing, setGoing] = useState(false);
  useKeyPress((key) => {
    const page = isGoing ? PAGES_BY_KEY.get(key) : undefined;
    setGoing(key === "g" && !isGoing);
    if (key === "?") setOpen(true);
    else if (page !== undefined) navigateTo([page]);
    return key === "?" || page !== undefined;
  });
  return (
    <>
      <button
        type="button"
        class="quiet"
        title="Keyboard shortcuts (?)"
        aria-label="Keyboard shortcuts"
        onClick={() => setOpen(true)}
      >
        ?
      </button>
      {isOpen && (
        <Dialog title="Keyboard shortcuts" onClose={() => setOpen(false)}>
          <div class="key-help">
            {KEYS.map(([place, keys]) => (
              <section key={place}>
                <h3>{place}</h3>
                <dl>
                  {keys.map(([key, what]) => (
                    <div key={key}>
                      <dt>
                        <kbd>{key}</kbd>
                      </dt>
                      <dd>{what}</dd>
                    </div>
                  ))}
                </dl>
              </section>
            ))}
          </div>
        </Dialog>
      )}
    </>
  );
}
