import type { ComponentChildren } from "preact";
import { ThemeButton } from "./theme-button.tsx";

const PAGES = [
  ["./", "Dashboard", "Threads, runs and the server"],
  ["docs", "Docs", "The guide, and the reference of the API"],
  ["inspector", "Inspector", "The statecharts of live actors"],
] as const;

interface HeaderProps {
  readonly current: (typeof PAGES)[number][1];
  /** The address to which the logo links: the page's own start. */
  readonly home: string;
  readonly children: ComponentChildren;
  /** Buttons before the button for the colour theme. */
  readonly buttons?: ComponentChildren;
  readonly onHome?: () => void;
}

/**
 * The header of a page: a link to the page's start, the page's own content, and links to the other pages.
 * `inspector.html` contains a copy of this header.
 */
export function SiteHeader({ current, home, children, buttons, onHome }: HeaderProps) {
  return (
    <header class="top">
      <a class="brand" href={home} onClick={onHome}>
        <Mark />
        Heddle
      </a>
      {children}
      <nav class="others" aria-label="Other pages">
        {PAGES.filter(([, name]) => name !== current).map(([href, name, title]) => (
          <a key={name} href={href} title={title}>
            {name}
          </a>
        ))}
      </nav>
      {buttons}
      <ThemeButton />
    </header>
  );
}

/** The logo: a heddle, which is the part of a loom with loops for the threads. */
function Mark() {
  return (
    <svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true" class="mark">
      <path d="M4 4h16M4 20h16" />
      <path d="M8 4v5m0 6v5M12 4v5m0 6v5M16 4v5m0 6v5" />
      <ellipse cx="8" cy="12" rx="1.6" ry="3" />
      <ellipse cx="12" cy="12" rx="1.6" ry="3" />
      <ellipse cx="16" cy="12" rx="1.6" ry="3" />
    </svg>
  );
}
