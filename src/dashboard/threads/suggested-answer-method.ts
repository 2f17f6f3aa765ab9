import { isJsonRecord } from "../api/records.ts";
import { findQuestionTextKey } from "../components/one-line-text.ts";

/** An answer that the user can choose. */
export interface AnswerChoice {
  readonly label: string;
  readonly value: unknown;
}

/** The input method that fits a question without a schema best. */
export interface SuggestedAnswerMethod {
  readonly method: "choice" | "yes" | "text" | "json";
  /** The answers that the question itself names; null if it names none. */
  readonly choices: readonly AnswerChoice[] | null;
}

/** The names of members of a question's value that may list the possible answers. */
const CHOICE_MEMBERS = ["options", "choices", "answers", "actions", "allowed_values"];
/** Up to this number of answers, each is shown as a button. */
const MAX_CHOICES = 8;

/** Answers are searched only in this many characters at the end of a question's text. */
const MAX_END_CHARACTERS = 300;
/** Matches answers at the end of a text, such as `(yes/no)` or `[a / b / c]`. */
const NAMED_AT_END = /[([]\s*([^()[\]/]{1,40}(?:\/[^()[\]/]{1,40})+)[)\]]\s*[?:.]*\s*$/u;
/**
 * Matches a word that is an answer. At least one of the words between the slashes must match, which excludes texts such
 * as `(km/h)`.
 */
const ANSWER_WORD =
  /^(?:yes|no|y|n|ok|true|false|approve|reject|accept|decline|deny|allow|confirm|cancel|continue|stop|edit|skip|retry)$/iu;
/** Matches words of questions that are answered with yes or no, such as "Do you approve this transfer?". */
const APPROVAL = /\b(?:approv|confirm|proceed|allow|permit|authori[sz]|accept|agree|are you sure|go ahead)/iu;
/**
 * Matches questions that cannot be answered with yes or no, because they begin with a question word or contain "or".
 */
const OPEN_QUESTION = /^\W*(?:what|which|who|whom|whose|when|where|why|how)\b|\bor\b/iu;

export function suggestAnswerMethod(value: unknown): SuggestedAnswerMethod {
  const text = textOf(value);
  const choices = listedChoices(value) ?? choicesAtEnd(text);
  if (choices !== null) return { method: "choice", choices };
  if (text === null) return { method: hasText(value) ? "text" : "json", choices: null };
  const isApproval = text.includes("?") && APPROVAL.test(text) && !OPEN_QUESTION.test(text);
  return { method: isApproval ? "yes" : "text", choices: null };
}

function textOf(value: unknown): string | null {
  if (typeof value === "string") return value;
  const key = findQuestionTextKey(value);
  return isJsonRecord(value) && key !== undefined ? String(value[key]) : null;
}

const hasText = (value: unknown): boolean =>
  isJsonRecord(value) && Object.values(value).some((one) => typeof one === "string" && one.trim() !== "");

function listedChoices(value: unknown): readonly AnswerChoice[] | null {
  if (!isJsonRecord(value)) return null;
  const lists = CHOICE_MEMBERS.map((name) => value[name]).filter(Array.isArray);
  for (const list of lists as readonly (readonly unknown[])[]) {
    const choices = list.flatMap((one) => choiceOf(one) ?? []);
    if (choices.length === list.length && choices.length > 0 && choices.length <= MAX_CHOICES) return choices;
  }
  return null;
}

/**
 * Converts an element of a list of answers: a plain value, or an object with a `value` and perhaps a `label`. Returns
 * null for anything else.
 */
function choiceOf(one: unknown): AnswerChoice | null {
  if (typeof one === "string" || typeof one === "number" || typeof one === "boolean")
    return { label: String(one), value: one };
  if (!isJsonRecord(one) || !("value" in one)) return null;
  const { value, label } = one;
  if (typeof label === "string" && label !== "") return { label, value };
  return { label: typeof value === "string" ? value : JSON.stringify(value), value };
}

function choicesAtEnd(text: string | null): readonly AnswerChoice[] | null {
  const named = NAMED_AT_END.exec((text ?? "").slice(-MAX_END_CHARACTERS))?.[1]
    ?.split("/")
    .map((one) => one.trim());
  if (named === undefined || named.length > MAX_CHOICES || named.includes("")) return null;
  if (!named.some((one) => ANSWER_WORD.test(one))) return null;
  return named.map((one) => ({ label: one, value: one }));
}
