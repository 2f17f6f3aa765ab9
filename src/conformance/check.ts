import type { Client } from "@langchain/langgraph-sdk";
import type { PlainHttpClient } from "./http-client.ts";

/** The server under test, reached both by LangGraph's JavaScript SDK and by plain HTTP. */
export interface TestedServer {
  readonly client: Client;
  readonly http: PlainHttpClient;
  /** Waits `ms` milliseconds: the pause between two polls. */
  pause(ms: number): Promise<void>;
}

export interface ConformanceCheck {
  /** A sentence that says what the server must do. Unique in its chapter. */
  readonly title: string;
  /**
   * Carries out the check.
   * @throws MismatchError if the server behaves otherwise than the title says
   */
  readonly run: (server: TestedServer) => Promise<void>;
}

/** The checks of one part of the API. */
export interface Chapter {
  readonly name: string;
  readonly checks: readonly ConformanceCheck[];
}

/** Makes a chapter. `checks`: by title, the functions that carry out its checks. */
export const defineChapter = (
  name: string,
  checks: { readonly [title: string]: (server: TestedServer) => Promise<void> },
): Chapter => ({ name, checks: Object.entries(checks).map(([title, run]) => ({ title, run })) });

/** A well-formed id that belongs to nothing. */
export const UNKNOWN_ID = "00000000-0000-4000-8000-000000000000";
