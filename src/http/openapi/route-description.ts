import type { answers } from "../../schemas/record-schemas.ts";
import type { TSchema } from "../../schemas/typebox.ts";
import type { bodies } from "./request-bodies.ts";

export type Tag =
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

export type RecordName = keyof typeof answers;

/** The successful response of a route. */
export type Answer =
  | {
      readonly kind: "json";
      readonly what: string;
      readonly schema: TSchema | RecordName | readonly [RecordName];
    }
  | { readonly kind: "none"; readonly status: 202 | 204 }
  | { readonly kind: "stream" }
  | { readonly kind: "text"; readonly type: string };

export interface Param {
  readonly name: string;
  readonly about?: string;
  readonly schema: TSchema;
}

/** The documentation of a route. */
export interface Description {
  readonly tag: Tag;
  readonly summary: string;
  readonly more?: string;
  readonly query?: readonly Param[];
  readonly body?: keyof typeof bodies;
  /** The body is a list of these. */
  readonly many?: true;
  readonly answer: Answer;
  /** Other responses, without a body: when they are given, by status. */
  readonly instead?: { readonly [status: number]: string };
}

/** By method and path, as in `GET /threads/:thread_id`. */
export type Descriptions = { readonly [route: string]: Description };

export const record = (name: RecordName, what = ""): Answer => ({ kind: "json", what, schema: name });
export const records = (name: RecordName, what = ""): Answer => ({ kind: "json", what, schema: [name] });
export const json = (schema: TSchema, what = ""): Answer => ({ kind: "json", what, schema });
export const none = (status: 202 | 204 = 204): Answer => ({ kind: "none", status });
export const stream: Answer = { kind: "stream" };
