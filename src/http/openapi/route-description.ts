import type { responseSchemas } from "../../schemas/record-schemas.ts";
import type { TSchema } from "../../schemas/typebox.ts";
import type { requestBodies } from "./request-bodies.ts";

export type RouteTag =
  | "Threads"
  | "Thread state"
  | "Runs"
  | "Runs without a thread"
  | "Assistants"
  | "Crons"
  | "Store"
  | "Webhooks"
  | "Protocol v2"
  | "Inspection"
  | "Server";

export type RecordName = keyof typeof responseSchemas;

export type RouteResponse =
  | {
      readonly kind: "json";
      readonly status: 200 | 202;
      readonly what: string;
      readonly schema: TSchema | RecordName | readonly [RecordName];
    }
  | { readonly kind: "none"; readonly status: 202 | 204 }
  | { readonly kind: "stream" }
  /** `json`: the schema of the JSON response for clients whose `accept` header does not include `type`. */
  | { readonly kind: "text"; readonly type: string; readonly json?: TSchema };

export interface QueryParam {
  readonly name: string;
  readonly about?: string;
  readonly schema: TSchema;
}

export interface RouteDescription {
  readonly tag: RouteTag;
  readonly summary: string;
  readonly more?: string;
  readonly query?: readonly QueryParam[];
  readonly body?: keyof typeof requestBodies;
  /** The request body is a list of objects described by `body`. */
  readonly many?: true;
  readonly answer: RouteResponse;
  /** Descriptions of further possible responses, which have no body, by status. */
  readonly instead?: { readonly [status: number]: string };
}

/** Route descriptions by method and path, as in `GET /threads/:thread_id`. */
export type RouteDescriptions = { readonly [route: string]: RouteDescription };

export const recordResponse = (name: RecordName, what = ""): RouteResponse => ({
  kind: "json",
  status: 200,
  what,
  schema: name,
});
export const recordListResponse = (name: RecordName, what = ""): RouteResponse => ({
  kind: "json",
  status: 200,
  what,
  schema: [name],
});
export const jsonResponse = (schema: TSchema, what = "", status: 200 | 202 = 200): RouteResponse => ({
  kind: "json",
  status,
  what,
  schema,
});
export const emptyResponse = (status: 202 | 204 = 204): RouteResponse => ({ kind: "none", status });
export const streamResponse: RouteResponse = { kind: "stream" };
