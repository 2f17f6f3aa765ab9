interface TabsProps {
  readonly label: string;
  readonly tabs: readonly {
    readonly id: string;
    readonly title: string;
    readonly href: string;
    readonly count?: number;
  }[];
  readonly current: string;
}

/** Tabs that are links, because each tab has an address. */
export function Tabs({ label, tabs, current }: TabsProps) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(({ id, title, href, count }) => (
        <a key={id} href={href} aria-current={id === current ? "page" : undefined}>
          {title}
          {count !== undefined && count > 0 && <span class="count">{count}</span>}
        </a>
      ))}
    </nav>
  );
}
