import { ServiceError } from "../model/errors.ts";
import { isObject, MAX_DEPTH } from "../model/json.ts";
import type { HttpRequest } from "../ports/transport.ts";
import { invalidField } from "./error-responses.ts";
import { parseInSteps, type Pace, STEP } from "./json-steps.ts";
import { checkText } from "./text-encoding.ts";

/** A JSON object from outside, its members not looked at yet. */
export type RawBody = Record<string, unknown>;

const decoder = new TextDecoder("utf-8", { fatal: true });

/**
 * Levels that a body may have: what is stored may have {@link MAX_DEPTH}, and stands at most this much below the body itself. Deeper
 * bodies are refused before they are parsed, since each later step (a copy, a digest, a comparison) is recursive.
 */
const DEEPEST = MAX_DEPTH + 16;
/** Members that a list may have. */
const MOST = 1000;
/** Lists, objects and their named members that a body may have in all: each takes a thousand times as long to parse as its bytes. */
const PARTS = 500_000;
/** Entries of lists, and members, that it may have in all: numbers alone take the least. */
const ENTRIES = 2_000_000;
/** Members that one object may have: names that are all different take the longest. */
const WIDEST = 100_000;
/** Bytes of a body that is parsed in steps. */
const LARGE = 512 * 1024;

/** Whom a body comes from. */
export interface Sender {
  /** Whom its memory is counted for. */
  readonly tenant: string;
  /** Lets others go on while a large one is parsed. */
  pace(): Pace;
}

/**
 * Reads a body that holds a JSON object, whatever its content type says; an empty one is `{}`. A member that is null is as
 * good as missing: some clients send one for the other.
 * @throws ServiceError `body.encoded`, `body.malformed`, `body.too_large`, `server.busy`, `validation.failed`
 */
export function readObject(request: HttpRequest, sender?: Sender): Promise<RawBody> {
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
      return objectOf(bytes);
    } finally {
      request.bodyRead?.();
    }
  });
}

/** The same of a body that holds a list of objects, one at least. Throws as {@link readObject} does. */
export async function readList(request: HttpRequest, sender: Sender): Promise<readonly RawBody[]> {
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

async function parsedInSteps(request: HttpRequest, bytes: Uint8Array, sender: Sender): Promise<unknown> {
  try {
    if (bytes.length <= LARGE) return parseJson(bytes, "body");
    const turns = sender.pace();
    await turns.next();
    const longer = checkStructure(bytes, "body");
    await turns.next();
    const body = await parseInSteps(bytes, longer, turns).catch((cause: unknown) => {
      throw cause instanceof ServiceError ? cause : malformed("body", cause);
    });
    // What is done with it begins with a turn of its own.
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

/** The same of bytes that came otherwise, as what `name` says. Throws as {@link readObject} does. */
export function objectOf(bytes: Uint8Array, name = "body"): RawBody {
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

/** The same for what a member holds. */
export function dropNulls(object: unknown): void {
  if (!isObject(object)) return;
  const members = object as RawBody;
  for (const name of Object.keys(members)) if (members[name] === null) delete members[name];
}

function parseJson(bytes: Uint8Array, name: string): unknown {
  if (bytes.length === 0) return {};
  // Each level takes a byte to open it and one to close it.
  if (bytes.length > 2 * DEEPEST) checkStructure(bytes, name);
  let text: string;
  let body: unknown;
  try {
    text = decoder.decode(bytes);
    body = JSON.parse(text);
  } catch (cause) {
    throw malformed(name, cause);
  }
  checkText(text, body);
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

/** Members of the object at each level that is open. Nothing here waits, so one is enough. */
const members = new Int32Array(DEEPEST + 1);
/** Where they begin. */
const begins = new Int32Array(DEEPEST + 1);

const NONE: ReadonlyMap<number, number> = new Map();

/**
 * Refuses what would take long to parse and to walk through, before any of it is done. Answers where lists and objects that are
 * longer than {@link STEP} begin and end.
 * @throws ServiceError `validation.failed` naming the member that is nested too deep, `body.too_large`, `body.malformed` where one
 *   of those ends with the other kind of bracket
 */
function checkStructure(bytes: Uint8Array, whole: string): ReadonlyMap<number, number> {
  let longer: Map<number, number> | undefined;
  let depth = 0;
  let parts = 0;
  let entries = 0;
  let isMembers = false;
  /** Where the latest text directly in the body begins and ends: the name of the member that follows. */
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

/** The text that a JSON string stands for; "" where it is none. */
function textIn(bytes: Uint8Array): string {
  try {
    return String(JSON.parse(decoder.decode(bytes)));
  } catch {
    return "";
  }
}
