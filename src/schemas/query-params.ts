import { invalidField } from "../model/errors.ts";
import { isObject, type JsonObject } from "../model/json.ts";

const NONE: readonly string[] = [];

/** The parameters of a request's query. Lists and booleans are accepted in several notations, because clients write them differently. */
export class QueryParams {
  readonly #params: URLSearchParams | undefined;

  constructor(query: string) {
    this.#params = query === "" ? undefined : new URLSearchParams(query);
  }

  text(name: string): string | undefined {
    return this.#params?.get(name) ?? undefined;
  }

  /**
   * Reads a list: a repeated parameter, texts separated by commas, or a JSON array of strings. Empty values are left out. Empty if the
   * parameter is absent.
   */
  list(name: string): readonly string[] {
    const given = this.#params?.getAll(name);
    if (given === undefined || given.length === 0) return NONE;
    return given
      .flatMap((text) => (text.startsWith("[") ? jsonList(name, text) : text.split(",")))
      .filter(Boolean);
  }

  /** Reads a namespace: labels separated by periods, a repeated parameter, or a JSON array of strings. Commas do not separate labels. */
  labels(name: string): readonly string[] {
    const given = (this.#params?.getAll(name) ?? []).filter((text) => text !== "");
    return given.flatMap((text) => listIn(text) ?? text.split("."));
  }

  /** Reads a list: a repeated parameter, or a JSON array of strings. Commas do not separate values, and empty values are kept. */
  all(name: string): readonly string[] {
    const given = this.#params?.getAll(name) ?? NONE;
    return given.flatMap((text) => (text.startsWith("[") ? jsonList(name, text) : text));
  }

  /** Reads a parameter that contains a JSON object; undefined if it is absent or empty. @throws ServiceError `validation.failed` */
  object(name: string): JsonObject | undefined {
    const text = this.text(name);
    if (text === undefined || text === "") return undefined;
    try {
      const value: unknown = JSON.parse(text);
      if (isObject(value)) return value;
    } catch {
      // The text is not JSON. The error is thrown below.
    }
    throw invalidField(name, "must be a JSON object");
  }

  flag(name: string): boolean | undefined {
    const text = this.text(name);
    switch (text?.toLowerCase()) {
      case undefined:
        return undefined;
      case "true":
      case "1":
      case "yes":
        return true;
      case "false":
      case "0":
      case "no":
      case "":
        return false;
      default:
        throw invalidField(name, "must be true or false");
    }
  }

  integer<Initial extends number | undefined>(
    name: string,
    { least, most, initial }: { readonly least: number; readonly most: number; readonly initial: Initial },
  ): number | Initial {
    const text = this.text(name);
    if (text === undefined || text === "") return initial;
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw invalidField(name, `must be a whole number from ${least} to ${most}`);
  }

  choice<T extends string>(name: string, choices: readonly T[]): T | undefined {
    const text = this.text(name);
    if (text === undefined || text === "") return undefined;
    const found = choices.find((choice) => choice === text);
    if (found !== undefined) return found;
    throw invalidField(name, `must be one of ${choices.join(", ")}`);
  }
}

function jsonList(name: string, text: string): readonly string[] {
  const list = listIn(text);
  if (list === undefined) throw invalidField(name, "must be a list of strings");
  return list;
}

/** Parses a JSON array of strings. Returns undefined for any other text. */
function listIn(text: string): readonly string[] | undefined {
  if (!text.startsWith("[")) return undefined;
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) && list.every((item) => typeof item === "string") ? list : undefined;
  } catch {
    return undefined;
  }
}
