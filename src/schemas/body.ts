import { ServiceError } from "../model/errors.ts";
import { isObject, MAX_DEPTH } from "../model/json.ts";
import type { HttpRequest } from "../ports/transport.ts";
import { invalidField } from "./error-responses.ts";
import { parseInSteps, type WorkPace, STEP } from "./json-steps.ts";
import { checkSurrogates } from "./text-encoding.ts";

/** A JSON object from a request, with its members not yet checked. */
export type RawBody = Record<string, unknown>;

const decoder = new TextDecoder("utf-8", { fatal: true });

/**
 * Nesting levels of a body. Stored values may have {@link MAX_DEPTH} levels and are at most this far below the body itself. Deeper bodies
 * are refused before parsing, since every later step (copy, digest, comparison) is recursive.
 */
const DEEPEST = MAX_DEPTH + 16;
/** Members of a list, at most. */
const MOST = 1000;
/** Lists, objects and named members of a whole body, at most: each takes a thousand times as long to parse as its bytes. */
const PARTS = 500_000;
/** List entries and members of a whole body, at most; plain numbers are the cheapest. */
const ENTRIES = 2_000_000;
/** Members of one object, at most: names that all differ are the slowest. */
const WIDEST = 100_000;
/** Bytes of a body above which it is parsed in steps. */
const LARGE = 512 * 1024;

/** The sender of a body. */
export interface BodySender {
  /** The tenant that the body's memory is counted for. */
  readonly tenant: string;
  /** Makes the parsing of a large body yield to other work. */
  workShare(): WorkPace;
}

/**
 * Reads a body with a JSON object, whatever its content type; an empty body is `{}`. A null member counts as missing: some clients send one
 * for the other.
 * @throws ServiceError `body.encoded`, `body.malformed`, `body.too_large`, `server.busy`, `validation.failed`
 */
export function readObject(request: HttpRequest, sender?: BodySender): Promise<RawBody> {
  try {
    checkEncoding(request);
  } catch (cause) {
    return Promise.reject(cause);
  }
  return request.body(sender?.tenant).then((bytes) => {
    if (sender !== undefined && bytes.length > LARGE) {
      return parsedInSteps(request, bytes, sender).then((body) => membersOf(body, "body"));
    }
    try {
      return parseObject(bytes);
    } finally {
      request.bodyRead?.();
    }
  });
}

/** Reads a body with a list of one or more objects. Throws as {@link readObject} does. */
export async function readObjectList(request: HttpRequest, sender: BodySender): Promise<readonly RawBody[]> {
  checkEncoding(request);
  const body = await parsedInSteps(request, await request.body(sender.tenant), sender);
  if (!Array.isArray(body) || body.length === 0)
    throw invalidField("body", "must be a JSON array of objects");
  if (body.length > MOST) throw invalidField("body", `must have at most ${MOST} members`);
  return body.map((item, i) => {
    if (!isObject(item)) throw invalidField(`[${i}]`, "must be a JSON object");
    dropNulls(item);
    return item as RawBody;
  });
}

async function parsedInSteps(request: HttpRequest, bytes: Uint8Array, sender: BodySender): Promise<unknown> {
  try {
    if (bytes.length <= LARGE) return parseJson(bytes, "body");
    const turns = sender.workShare();
    await turns.next();
    const longer = checkStructure(bytes, "body");
    await turns.next();
    const body = await parseInSteps(bytes, longer, turns).catch((cause: unknown) => {
      throw cause instanceof ServiceError ? cause : malformed("body", cause);
    });
    // The caller's work starts in a turn of its own.
    await turns.next();
    return body;
  } finally {
    request.bodyRead?.();
  }
}

function checkEncoding(request: HttpRequest): void {
  const coding = request.header("content-encoding") ?? "";
  if (coding === "" || coding.toLowerCase() === "identity") return;
  const message = `content-encoding ${coding.slice(0, 100)} is not served: send the body as it is`;
  throw new ServiceError("body.encoded", message);
}

/** Parses bytes that came in another way; `name` is their name in errors. Throws as {@link readObject} does. */
export function parseObject(bytes: Uint8Array, name = "body"): RawBody {
  return membersOf(parseJson(bytes, name), name);
}

function membersOf(body: unknown, name: string): RawBody {
  if (!isObject(body)) throw invalidField(name, "must be a JSON object");
  const members = body as RawBody;
  for (const name of Object.keys(members)) {
    if (members[name] === null) members[name] = undefined;
  }
  return members;
}

/** Deletes the null members of an object inside a body. */
export function dropNulls(object: unknown): void {
  if (!isObject(object)) return;
  const members = object as RawBody;
  for (const name of Object.keys(members)) if (members[name] === null) delete members[name];
}

function parseJson(bytes: Uint8Array, name: string): unknown {
  if (bytes.length === 0) return {};
  // Shorter bytes cannot be nested too deep: each level takes one byte to open and one to close.
  if (bytes.length > 2 * DEEPEST) checkStructure(bytes, name);
  let text: string;
  let body: unknown;
  try {
    text = decoder.decode(bytes);
    body = JSON.parse(text);
  } catch (cause) {
    throw malformed(name, cause);
  }
  checkSurrogates(text, body);
  return body;
}

function malformed(name: string, cause: unknown): ServiceError {
  const where = name === "body" ? "request body" : `the ${name}`;
  return new ServiceError("body.malformed", `Malformed JSON in ${where}`, { cause });
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Number of members of the open object at each level. Shared by all calls, which are synchronous. */
const members = new Int32Array(DEEPEST + 1);
/** Start of the open list or object at each level. */
const begins = new Int32Array(DEEPEST + 1);

const NONE: ReadonlyMap<number, number> = new Map();

/**
 * Refuses bodies that would take long to parse or walk, before doing so. Returns the start and end of each list and object longer than
 * {@link STEP}.
 * @throws ServiceError `validation.failed`, naming the member that is nested too deep; `body.too_large`; `body.malformed` when a long list
 *   or object ends with the wrong bracket
 */
function checkStructure(bytes: Uint8Array, whole: string): ReadonlyMap<number, number> {
  let longer: Map<number, number> | undefined;
  let depth = 0;
  let parts = 0;
  let entries = 0;
  let isMembers = false;
  /** Start and end of the latest string directly in the body: the name of the next member. */
  let from = 0;
  let to = 0;
  const member = () => (isMembers ? textIn(bytes.subarray(from, to)) : "");
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i];
    if (byte === QUOTE) {
      const start = i;
      for (i++; i < bytes.length && bytes[i] !== QUOTE; i++) if (bytes[i] === BACKSLASH) i++;
      if (depth === 1) [from, to] = [start, i + 1];
    } else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      if (++depth === 1) isMembers = byte === OPEN_OBJECT;
      else if (depth > DEEPEST)
        throw invalidField(member() || whole, `is nested deeper than ${MAX_DEPTH} levels`);
      members[depth] = 0;
      begins[depth] = i;
      parts++;
    } else if (byte === COLON) {
      parts++;
      if (++(members[depth] as number) > WIDEST)
        throw tooLarge(`an object has more than ${WIDEST} members`, member());
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) {
      const begin = begins[depth] as number;
      if (depth > 0 && i - begin > STEP) {
        if ((bytes[begin] === OPEN_LIST) !== (byte === CLOSE_LIST)) throw malformed(whole, undefined);
        (longer ??= new Map()).set(begin, i);
      }
      depth--;
    } else if (byte === COMMA && ++entries > ENTRIES)
      throw tooLarge(`there are more than ${ENTRIES} members and list entries`, member());
    if (parts > PARTS)
      throw tooLarge(`there are more than ${PARTS} lists, objects and members of objects`, member());
  }
  return longer ?? NONE;
}

const tooLarge = (what: string, member: string) =>
  new ServiceError("body.too_large", `The body is too large: ${what}${member && `, in ${member}`}`);

/** The value of a JSON string; "" when the bytes are none. */
function textIn(bytes: Uint8Array): string {
  try {
    return String(JSON.parse(decoder.decode(bytes)));
  } catch {
    return "";
  }
}
