import type { Client } from "@langchain/langgraph-sdk";
import type { PlainHttpClient } from "./http-client.ts";

/** The server under test, with two clients: LangGraph's JavaScript SDK and plain HTTP. */
export interface TestedServer {
  readonly client: Client;
  readonly http: PlainHttpClient;
  /** Waits `ms` milliseconds. */
  pause(ms: number): Promise<void>;
}

export interface ConformanceCheck {
  /** A sentence that says what the server must do, unique in its chapter. */
  readonly title: string;
  /** Carries out the check. @throws MismatchError if the server does not do what the title says */
  readonly run: (server: TestedServer) => Promise<void>;
}

/** The checks of one part of the API. */
export interface Chapter {
  readonly name: string;
  readonly checks: readonly ConformanceCheck[];
}

/** Creates a chapter from the functions that carry out its checks, by title. */
export const defineChapter = (
  name: string,
  checks: { readonly [title: string]: (server: TestedServer) => Promise<void> },
): Chapter => ({ name, checks: Object.entries(checks).map(([title, run]) => ({ title, run })) });

/** A well-formed UUID that no resource has. */
export const UNKNOWN_ID = "00000000-0000-4000-8000-000000000000";
