import * as fc from "fast-check";
import type { Operation } from "./api.ts";
import { anything, print, textFor, valueFor, KnownId, RawJson } from "./values.ts";

/** A request whose ids are not known yet. */
export interface Request {
  readonly operation: Operation;
  readonly method: string;
  readonly parts: { readonly [name: string]: unknown };
  readonly query: readonly (readonly [string, unknown])[];
  readonly body: unknown;
  readonly headers: { readonly [name: string]: string };
}

const headerTexts = fc.constantFrom(
  "",
  "k",
  "k2",
  "0",
  "-1",
  "999999999999999",
  "1e20",
  "\u00ff",
  "a".repeat(256),
  "a".repeat(3_000),
);

const headers = fc
  .tuple(
    fc.nat(7),
    fc.constantFrom(
      "idempotency-key",
      "last-event-id",
      "prefer",
      "x-request-id",
      "x-tenant",
      "accept",
      "authorization",
    ),
    headerTexts,
    fc.nat(19),
    fc.constantFrom("text/plain", "application/json; charset=latin1", "application/xml", "\u00ff"),
  )
  .map(([any, name, text, other, type]) => ({
    "content-type": other === 0 ? type : "application/json",
    ...(any === 0 && { [name]: text }),
  }));

const bodies = fc
  .constantFrom("", "{", "[]", "null", "3", '"a"', "\0", "{}{}", "[{}]", '{"a":1', "\ufeff{}")
  .map((text) => new RawJson(text));

export function requestFor(operation: Operation): fc.Arbitrary<Request> {
  const names = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  const parts = fc.record(Object.fromEntries(names.map((name) => [name, textFor({ type: "string" }, name)])));
  const query = fc
    .tuple(
      ...operation.query.map(({ name, schema }) =>
        fc
          .tuple(fc.nat(3), textFor(schema.type === "array" ? (schema.items ?? {}) : schema, name))
          .map(([n, value]) => (n === 0 ? [[name, value] as const] : [])),
      ),
    )
    .map((all) => all.flat());
  const body =
    operation.body === undefined
      ? fc.constant(undefined)
      : fc.oneof(
          { weight: 12, arbitrary: valueFor(operation.body) },
          { weight: 1, arbitrary: bodies },
          { weight: 1, arbitrary: anything },
        );
  const method = fc
    .nat(29)
    .chain((n) =>
      n > 0
        ? fc.constant(operation.method)
        : fc.constantFrom("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"),
    );
  return fc.record({ operation: fc.constant(operation), method, parts, query, body, headers });
}

/** A request with its ids filled in, as sent. */
export interface Sent {
  readonly method: string;
  readonly target: string;
  readonly headers: { readonly [name: string]: string };
  readonly body: string | undefined;
}

export function filled(
  { operation, method, parts, query, body, headers }: Request,
  idOf: (id: KnownId) => string,
): Sent {
  const text = (value: unknown): string =>
    value instanceof KnownId ? idOf(value) : typeof value === "object" ? print(value, idOf) : String(value);
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encoded(text(parts[name])));
  const asked = query.map(([name, value]) => `${name}=${encoded(text(value))}`).join("&");
  return {
    method,
    // Longer targets are tested with the transport.
    target: `${path}${asked === "" ? "" : `?${asked}`}`.slice(0, 7_000),
    headers,
    body: body === undefined || method === "GET" || method === "HEAD" ? undefined : print(body, idOf),
  };
}

/** Percent-encodes a text. An unpaired surrogate, which has no encoding, becomes the bytes that some clients send. */
function encoded(text: string): string {
  try {
    return encodeURIComponent(text);
  } catch {
    return "%ED%A0%80";
  }
}
