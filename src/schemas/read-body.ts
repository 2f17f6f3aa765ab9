import { ServiceError, invalidField } from "../model/errors.ts";
import { isObject } from "../model/json.ts";
import type { HttpRequest } from "../ports/transport.ts";
import { parseJsonInSteps, type WorkBudget } from "./parse-json-in-steps.ts";
import { MAX_BODY_DEPTH, malformedJson, PARSE_STEP_BYTES, StructureCheck } from "./json-structure.ts";
import { checkSurrogates } from "./lone-surrogates.ts";

/** A JSON object from a request. Its members are not checked yet. */
export type RawBody = Record<string, unknown>;

const decoder = new TextDecoder("utf-8", { fatal: true });

/** The largest number of objects in a body that is a list. */
const MAX_LIST_MEMBERS = 1000;
/** Bytes. A larger body is parsed in steps, between which other work runs. */
const LARGE_BODY_BYTES = 512 * 1024;

/** The sender of a request body. The body's memory is charged to the tenant, and its parsing uses the work share. */
export interface BodySender {
  readonly tenant: string;
  /** The budget for parsing a large body, which makes the parsing yield to other work. */
  workShare(): WorkBudget;
}

/** What a null member of a body means: `missing`, that the member is not set; `kept`, the value null. */
type Nulls = "missing" | "kept";

/**
 * Reads a request body, a JSON object, whatever its content type. An empty body is `{}`. A null member counts as missing by default,
 * because some clients send null for a missing member.
 * @throws ServiceError `body.encoded`, `body.malformed`, `body.too_large`, `server.busy`, `validation.failed`
 */
export function readBodyObject(
  request: HttpRequest,
  sender?: BodySender,
  nulls: Nulls = "missing",
): Promise<RawBody> {
  try {
    checkEncoding(request);
  } catch (cause) {
    return Promise.reject(cause);
  }
  return request.body(sender?.tenant).then((bytes) => {
    if (sender !== undefined && bytes.length > LARGE_BODY_BYTES) {
      return parsedInSteps(request, bytes, sender).then((body) => membersOf(body, "body", nulls));
    }
    try {
      return parseObject(bytes, "body", nulls);
    } finally {
      request.bodyRead?.();
    }
  });
}

/** Reads a request body, a list of one or more objects. Rejects like {@link readBodyObject}. */
export async function readBodyList(request: HttpRequest, sender: BodySender): Promise<readonly RawBody[]> {
  checkEncoding(request);
  const body = await parsedInSteps(request, await request.body(sender.tenant), sender);
  if (!Array.isArray(body) || body.length === 0)
    throw invalidField("body", "must be a JSON array of objects");
  if (body.length > MAX_LIST_MEMBERS)
    throw invalidField("body", `must have at most ${MAX_LIST_MEMBERS} members`);
  return body.map((item, i) => {
    if (!isObject(item)) throw invalidField(`[${i}]`, "must be a JSON object");
    dropNulls(item);
    return item as RawBody;
  });
}

async function parsedInSteps(request: HttpRequest, bytes: Uint8Array, sender: BodySender): Promise<unknown> {
  try {
    if (bytes.length <= LARGE_BODY_BYTES) return parseJson(bytes, "body");
    const turns = sender.workShare();
    await turns.next();
    const structure = new StructureCheck(bytes, "body");
    // oxlint-disable-next-line no-await-in-loop -- a pause between two steps lets other work run
    while (!structure.check(PARSE_STEP_BYTES)) if (turns.isSpent()) await turns.next();
    const body = await parseJsonInSteps(bytes, structure.longer, turns).catch((cause: unknown) => {
      throw cause instanceof ServiceError ? cause : malformedJson("body", cause);
    });
    // The caller continues in another turn of the event loop.
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

/** Parses bytes as a JSON object. `name`: what errors call the bytes. Throws like {@link readBodyObject}. */
export function parseObject(bytes: Uint8Array, name = "body", nulls: Nulls = "missing"): RawBody {
  return membersOf(parseJson(bytes, name), name, nulls);
}

function membersOf(body: unknown, name: string, nulls: Nulls): RawBody {
  if (!isObject(body)) throw invalidField(name, "must be a JSON object");
  const members = body as RawBody;
  if (nulls === "kept") return members;
  for (const name of Object.keys(members)) {
    if (members[name] === null) members[name] = undefined;
  }
  return members;
}

/** Deletes the null members of `object`. Does nothing if it is not an object. */
export function dropNulls(object: unknown): void {
  if (!isObject(object)) return;
  const members = object as RawBody;
  for (const name of Object.keys(members)) if (members[name] === null) delete members[name];
}

function parseJson(bytes: Uint8Array, name: string): unknown {
  if (bytes.length === 0) return {};
  // A shorter text cannot be nested too deeply: each level takes one byte to open and one to close.
  if (bytes.length > 2 * MAX_BODY_DEPTH) new StructureCheck(bytes, name).check(bytes.length);
  let text: string;
  let body: unknown;
  try {
    text = decoder.decode(bytes);
    body = JSON.parse(text);
  } catch (cause) {
    throw malformedJson(name, cause);
  }
  checkSurrogates(text, body);
  return body;
}
