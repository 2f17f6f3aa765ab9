import { ServiceError } from "../model/errors.ts";
import { isObject, MAX_DEPTH } from "../model/json.ts";
import type { HttpRequest } from "../ports/transport.ts";
import { invalidField } from "./errors.ts";
import { checkText } from "./surrogates.ts";

/** A JSON object from outside, its members not looked at yet. */
export type RawBody = Record<string, unknown>;

const decoder = new TextDecoder("utf-8", { fatal: true });

/** From this size on a body is looked through before it is parsed: deep nesting would stop the server for seconds. */
const LARGE = 64 * 1024;
/** Members that a list may have. */
const MOST = 1000;

/**
 * Reads a body that holds a JSON object, whatever its content type says; an empty one is `{}`. A member that is null is as
 * good as missing: some clients send one for the other.
 * @throws ServiceError `body.encoded`, `body.malformed`, `body.too_large`, `validation.failed`
 */
export function readObject(request: HttpRequest): Promise<RawBody> {
  try {
    checkEncoding(request);
  } catch (cause) {
    return Promise.reject(cause);
  }
  return request.body().then((bytes) => objectOf(bytes));
}

/** The same of a body that holds a list of objects, one at least. Throws as {@link readObject} does. */
export async function readList(request: HttpRequest): Promise<readonly RawBody[]> {
  checkEncoding(request);
  const body = parseJson(await request.body(), "body");
  if (!Array.isArray(body) || body.length === 0)
    throw invalidField("body", "must be a JSON array of objects");
  if (body.length > MOST) throw invalidField("body", `must have at most ${MOST} members`);
  return body.map((item, i) => {
    if (!isObject(item)) throw invalidField(`[${i}]`, "must be a JSON object");
    dropNulls(item);
    return item as RawBody;
  });
}

function checkEncoding(request: HttpRequest): void {
  const coding = request.header("content-encoding") ?? "";
  if (coding === "" || coding.toLowerCase() === "identity") return;
  const message = `content-encoding ${coding.slice(0, 100)} is not served: send the body as it is`;
  throw new ServiceError("body.encoded", message);
}

/** The same of bytes that came otherwise, as what `name` says. Throws as {@link readObject} does. */
export function objectOf(bytes: Uint8Array, name = "body"): RawBody {
  const body = parseJson(bytes, name);
  if (!isObject(body)) throw invalidField(name, "must be a JSON object");
  const members = body as RawBody;
  for (const name of Object.keys(members)) {
    if (members[name] === null) members[name] = undefined;
  }
  return members;
}

/** The same for what a member holds. */
export function dropNulls(object: unknown): void {
  if (!isObject(object)) return;
  const members = object as RawBody;
  for (const name of Object.keys(members)) if (members[name] === null) delete members[name];
}

function parseJson(bytes: Uint8Array, name: string): unknown {
  if (bytes.length === 0) return {};
  if (bytes.length > LARGE && isTooDeep(bytes)) {
    throw invalidField(name, `is nested deeper than ${MAX_DEPTH} levels`);
  }
  let text: string;
  let body: unknown;
  try {
    text = decoder.decode(bytes);
    body = JSON.parse(text);
  } catch (cause) {
    const where = name === "body" ? "request body" : `the ${name}`;
    throw new ServiceError("body.malformed", `Malformed JSON in ${where}`, { cause });
  }
  checkText(text, body);
  return body;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

function isTooDeep(bytes: Uint8Array): boolean {
  let depth = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i];
    if (byte === QUOTE) {
      for (i++; i < bytes.length && bytes[i] !== QUOTE; i++) if (bytes[i] === BACKSLASH) i++;
    } else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      // The body itself is a level above what it holds.
      if (++depth > MAX_DEPTH + 1) return true;
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth--;
  }
  return false;
}
