/** The pages of the dashboard, in the order of the navigation. Typing `g` and then `key` opens a page. */
export const DASHBOARD_PAGES = [
  { name: "threads", title: "Threads", key: "t" },
  { name: "inbox", title: "Inbox", key: "i" },
  { name: "runs", title: "Runs", key: "r" },
  { name: "graphs", title: "Graphs", key: "g" },
  { name: "assistants", title: "Assistants", key: "a" },
  { name: "crons", title: "Crons", key: "c" },
  { name: "store", title: "Store", key: "s" },
  { name: "system", title: "System", key: "y" },
] as const;

export type DashboardPageName = (typeof DASHBOARD_PAGES)[number]["name"];
