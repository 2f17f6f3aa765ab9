import { Client as Line1 } from "@langchain/langgraph-sdk";
import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";
import { Client as Line2 } from "langgraph-sdk-2";
import { Auth as Auth2 } from "langgraph-sdk-2/auth";
import type { Client } from "./clients.ts";

/** Users by their tokens. Alice and Bob have the same permissions; Carol may read only what is hers. */
export const tokens = { alice: "alice-token", bob: "bob-token", carol: "carol-token" } as const;
export type Name = keyof typeof tokens;

export const headersOf = (name: Name): Record<string, string> => ({
  authorization: `Bearer ${tokens[name]}`,
});

/** Clients of both major versions of the SDK, with a user's token. */
export const clientsOf: readonly (readonly [line: string, connect: (url: string, name: Name) => Client])[] = [
  ["SDK 1.15", (url, name) => new Line1(options(url, name))],
  ["SDK 2.0", (url, name) => new Line2(options(url, name)) as unknown as Client],
];

/** A client with a user's token. */
export const connectAs = (url: string, name: Name): Client => new Line1(options(url, name));

const options = (apiUrl: string, name: Name) => ({
  apiUrl,
  apiKey: null,
  defaultHeaders: headersOf(name),
  callerOptions: { maxRetries: 0 },
});

/** The `Auth` of both versions. */
export const auths: readonly (readonly [line: string, make: () => Auth])[] = [
  ["1.15", () => new Auth()],
  ["2.0", () => new Auth2() as unknown as Auth],
];

/** Returns the user of a token. */
export function authenticate(request: Request) {
  const token = /^Bearer (.+)$/.exec(request.headers.get("authorization") ?? "")?.[1];
  const name = Object.entries(tokens).find(([, known]) => known === token)?.[0];
  if (name === undefined) throw new HTTPException(401, { message: "Who are you?" });
  return {
    identity: name,
    display_name: name.toUpperCase(),
    permissions: name === "carol" ? [] : ["write"],
    secret: `of ${name}`,
  };
}

/**
 * The rules of LangGraph's own documentation: a resource belongs to the user who created it, and nobody else can see
 * it.
 */
export const owned = (auth: Auth = new Auth()): Auth =>
  auth.authenticate(authenticate).on("*", ({ value, user }) => {
    if ("metadata" in value) {
      value.metadata ??= {};
      value.metadata["owner"] = user.identity;
    }
    return { owner: user.identity };
  }) as unknown as Auth;
