/** The tabs of a thread's page, in their order. */
export const THREAD_TABS = [
  { id: "talk", title: "Current" },
  { id: "runs", title: "Runs" },
  { id: "history", title: "History" },
  { id: "graph", title: "Graph" },
  { id: "events", title: "Events" },
] as const;
export type ThreadTab = (typeof THREAD_TABS)[number]["id"];

export const isThreadTab = (name: string): name is ThreadTab => THREAD_TABS.some(({ id }) => id === name);
