import {
  BACKSLASH,
  CLOSE_LIST,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  type LongContainerEnds,
  OPEN_LIST,
  OPEN_OBJECT,
  QUOTE,
  PARSE_STEP_BYTES,
  StringEndFinder,
} from "./json-structure.ts";
import { hasLoneSurrogate, refuseLoneSurrogates } from "./lone-surrogates.ts";

/** A budget that long work asks after each step, with the bytes of the step. When `isSpent` returns true, the work MUST await `next`. */
export interface WorkBudget {
  isSpent(bytes?: number): boolean;
  next(): Promise<void>;
}

/** A string of at least this many bytes is parsed separately. */
const LONG_STRING_BYTES = PARSE_STEP_BYTES;

const LETTER_U = 0x75;
/** The value of the upper two bits in every byte of a UTF-8 character except its first byte. */
const CONTINUATION = 0x80;
const CONTINUATION_MASK = 0xc0;

const BLANK = /^[\t\n\r ]*$/;
/** Matches characters for which the text of a JSON string differs from its value, or is invalid: escapes and control characters. */
// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const ESCAPE = /[\u0000-\u001f\\]/;

/**
 * `ignoreBOM` keeps a byte order mark in the text, so that `JSON.parse` refuses a mark in the middle of the JSON, where it is not
 * whitespace.
 */
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Parses JSON like `JSON.parse`, but a few hundred kilobytes at a time, so that other work can run in between: 16 MiB at once take up to
 * half a second. `longer`: the lists and objects that are too long for one step; they are split at their commas.
 * @throws SyntaxError; TypeError if the bytes are not UTF-8; ServiceError `validation.failed` if a string contains half of a surrogate pair
 */
export async function parseJsonInSteps(
  bytes: Uint8Array,
  longer: LongContainerEnds,
  budget: WorkBudget,
): Promise<unknown> {
  const parsing = new Parsing(bytes, longer, budget);
  // Skips a byte order mark at the start.
  const from = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  let start = from;
  while (start < bytes.length && isBlank(bytes[start])) start++;
  const end = longer.get(start);
  if (end === undefined) return parsing.text(from, bytes.length);
  const value = await parsing.container(start, end);
  parsing.expectBlank(end + 1, bytes.length);
  if (parsing.isOdd) refuseLoneSurrogates(value);
  return value;
}

const isBlank = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

class Parsing {
  /** True once a string with a single half of a surrogate pair was parsed. */
  isOdd = false;
  readonly #bytes: Uint8Array;
  readonly #longer: LongContainerEnds;
  readonly #strings: StringEndFinder;
  readonly #budget: WorkBudget;

  constructor(bytes: Uint8Array, longer: LongContainerEnds, budget: WorkBudget) {
    this.#bytes = bytes;
    this.#longer = longer;
    this.#strings = new StringEndFinder(bytes);
    this.#budget = budget;
  }

  /** Parses the JSON between two positions in one step. */
  text(from: number, to: number): unknown {
    return this.#parse(this.#decode(from, to));
  }

  expectBlank(from: number, to: number): void {
    if (to > from && !BLANK.test(this.#decode(from, to))) throw new SyntaxError("a comma is missing");
  }

  /** Parses the list or object whose brackets are at `start` and `end`. */
  async container(start: number, end: number): Promise<unknown> {
    const bytes = this.#bytes;
    const built = bytes[start] === OPEN_LIST ? new List(this) : new Members(this);
    /** `from`: the start of the text that is not parsed yet. `member`: the start of the last member in that text. */
    let from = start + 1;
    let member = from;
    let depth = 0;
    /** True if a value may begin here: always in a list, but in an object only after a name and a colon. */
    let hasName = built instanceof List;
    /** True if a value of the current member was parsed separately, so that only a comma may follow. */
    let isRead = false;
    for (let i = start + 1; i < end; i++) {
      const byte = bytes[i];
      let last = i;
      if (byte === QUOTE) {
        i = this.#strings.after(i);
        if (depth > 0 || !hasName || i - last < LONG_STRING_BYTES) continue;
        [last, i] = [i, last];
      } else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
        const close = depth === 0 ? this.#longer.get(i) : undefined;
        if (close === undefined) {
          depth++;
          continue;
        }
        last = close;
      } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) {
        depth--;
        continue;
      } else if (byte === COLON) {
        if (depth === 0) hasName = true;
        continue;
      } else if (byte === COMMA) {
        if (depth > 0) continue;
        if (isRead) this.expectBlank(from, i);
        else if (i - from >= PARSE_STEP_BYTES) {
          built.take(this.#decode(from, i));
          await this.#rest(i - from);
        } else {
          member = i + 1;
          hasName = built instanceof List;
          continue;
        }
        isRead = false;
        from = member = i + 1;
        hasName = built instanceof List;
        continue;
      } else continue;
      // The value from `i` to `last` is long, so it is parsed separately.
      if (isRead) throw new SyntaxError("a comma is missing");
      if (member > from) built.take(this.#decode(from, member - 1));
      const head = this.#decode(member, i);
      const value = byte === QUOTE ? await this.#long(i, last) : await this.container(i, last);
      built.add(head, value);
      isRead = true;
      i = last;
      from = last + 1;
    }
    if (isRead) this.expectBlank(from, end);
    else if (from > start + 1 || !BLANK.test(this.#decode(from, end))) built.take(this.#decode(from, end));
    await this.#rest(end - from);
    return built.value;
  }

  #parse(text: string): unknown {
    const value: unknown = JSON.parse(text);
    if (!this.isOdd && hasLoneSurrogate(text, value)) this.isOdd = true;
    return value;
  }

  parse = (text: string): unknown => this.#parse(text);

  /** Parses a string in parts, given the positions of its quotes. A part without escapes is taken as it is. */
  async #long(open: number, close: number): Promise<string> {
    let value = "";
    for (let from = open + 1; from < close;) {
      const to = this.#partEnd(from, close);
      const text = this.#decode(from, to);
      value += ESCAPE.test(text) ? String(this.#parse(`"${text}"`)) : text;
      // oxlint-disable-next-line no-await-in-loop -- a pause between two parts lets other work run
      await this.#rest(to - from);
      from = to;
    }
    return value;
  }

  /** The end of the part of a string that begins at `from`. A part never ends within a character or an escape. */
  #partEnd(from: number, close: number): number {
    const bytes = this.#bytes;
    const least = from + PARSE_STEP_BYTES;
    // A surrogate pair may be written as two successive escapes. So a part does not end directly before an escape, unless the part would
    // become too long.
    const most = least + PARSE_STEP_BYTES;
    for (let i = from; i < close; i++) {
      const byte = bytes[i] as number;
      if (i >= least && (byte & CONTINUATION_MASK) !== CONTINUATION && (byte !== BACKSLASH || i >= most)) {
        return i;
      }
      if (byte === BACKSLASH) i += bytes[i + 1] === LETTER_U ? 5 : 1;
    }
    return close;
  }

  #decode(from: number, to: number): string {
    return decoder.decode(this.#bytes.subarray(from, to));
  }

  async #rest(bytes: number): Promise<void> {
    if (this.#budget.isSpent(bytes)) await this.#budget.next();
  }
}

interface Parser {
  readonly parse: (text: string) => unknown;
}

/** A list that is assembled from several steps. */
class List {
  value: unknown[] = [];
  readonly #parse: Parser["parse"];

  constructor({ parse }: Parser) {
    this.#parse = parse;
  }

  /** Parses the text between two commas, which may contain several items. */
  take(text: string): void {
    const part = this.#parse(`[${text}]`) as unknown[];
    if (part.length === 0) throw new SyntaxError("a member is missing");
    if (this.value.length === 0) this.value = part;
    else for (const item of part) this.value.push(item);
  }

  add(head: string, value: unknown): void {
    if (!BLANK.test(head)) throw new SyntaxError("a comma is missing");
    this.value.push(value);
  }
}

/** An object that is assembled from several steps. */
class Members {
  value: Record<string, unknown> = {};
  readonly #parse: Parser["parse"];

  constructor({ parse }: Parser) {
    this.#parse = parse;
  }

  take(text: string): void {
    const part = this.#parse(`{${text}}`) as Record<string, unknown>;
    const names = Object.keys(part);
    if (names.length === 0) throw new SyntaxError("a member is missing");
    for (const name of names) this.#put(name, part[name]);
  }

  /** Adds a member whose value was parsed separately. `head`: the text before the value, which should be the member's name and a colon. */
  add(head: string, value: unknown): void {
    // Parsing checks `head`: anything except one name and a colon, such as a minus sign, is a syntax error.
    const [name, ...others] = Object.keys(this.#parse(`{${head}null}`) as object);
    if (name === undefined || others.length > 0) throw new SyntaxError("a name is missing");
    this.#put(name, value);
  }

  #put(name: string, value: unknown): void {
    // A member named `__proto__` is defined, because an assignment would set the prototype.
    if (name !== "__proto__") this.value[name] = value;
    else
      Object.defineProperty(this.value, name, {
        value,
        enumerable: true,
        configurable: true,
        writable: true,
      });
  }
}
