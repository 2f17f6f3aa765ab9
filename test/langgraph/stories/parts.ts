import { Annotation, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";
import type { Deed, Seen } from "../driving.ts";

export interface Story {
  readonly make: () => unknown;
  readonly deeds: readonly Deed[];
  /** The part in which the two differ, and why. */
  readonly but?: (seen: Seen) => unknown;
  /** The minor version of LangGraph.js from which on both behave alike, and the behaviour before it. */
  readonly since?: readonly [minor: number, before: string];
}

/** By their descriptions. */
export type Stories = Readonly<Record<string, Story>>;

export type Config = LangGraphRunnableConfig;

export const Log = Annotation.Root({
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
  last: Annotation<unknown>,
});

export const say = (text: string) => () => ({ log: [text] });

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export const sub = (name: string) =>
  new StateGraph(Log)
    .addNode("x", say(`${name} x`))
    .addNode("y", say(`${name} y`))
    .addEdge(START, "x")
    .addEdge("x", "y")
    .compile();

/** The first minor version of LangGraph.js that forks, and what earlier ones do. Heddle forks with every version. */
export const SINCE_FORKS = [
  4,
  "it goes on from an older checkpoint without a fork, and asks nothing again",
] as const;

/** LangGraph shows an older state with the writes of a later command; Heddle shows it unchanged. */
export const exceptHistory = ({ streams, state }: Seen): unknown => ({ streams, state });

/**
 * LangGraph shows planned tasks of an older checkpoint with the results of an earlier run; Heddle keeps them until
 * their step's checkpoint.
 */
export const exceptEarlierResults = (seen: Seen): unknown =>
  JSON.parse(
    JSON.stringify(seen, (_, value: unknown) =>
      typeof value === "object" && value !== null && "path" in value
        ? { ...value, result: undefined }
        : value,
    ),
  );

/** Without checkpoints, nothing shows the step of a task. */
export const exceptSteps = (seen: Seen): unknown =>
  JSON.parse(JSON.stringify(seen, (key, value: unknown) => (key === "step" ? 0 : value)));
