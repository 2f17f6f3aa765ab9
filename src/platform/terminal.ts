import { styleText } from "node:util";

/** The part of an output stream that is needed here, as `process.stdout` and `process.stderr` have it. */
export interface OutputStream {
  readonly isTTY?: boolean;
  /** Characters in a line of the terminal. */
  readonly columns?: number;
  write(text: string): unknown;
}

type Env = { readonly [name: string]: string | undefined };
type Style = Parameters<typeof styleText>[0];

/** Adds colours and other formats to a text, or returns it unchanged. */
export type ApplyStyle = (style: Style, text: string) => string;

/** An {@link ApplyStyle} that returns the text unchanged. It does not remove styles that the text has already. */
export const leaveUnstyled: ApplyStyle = (_, text) => text;

/**
 * Returns a function that colours text on a terminal, and leaves text unchanged elsewhere, if `NO_COLOR` is set, or if `TERM` is `dumb`.
 * `FORCE_COLOR` overrides all of this: 0 or false for no colours, anything else for colours.
 */
export function applyStyleFor({ isTTY }: Pick<OutputStream, "isTTY">, env: Env): ApplyStyle {
  const { FORCE_COLOR: forced, NO_COLOR: refused = "", TERM: terminal } = env;
  const isColoured =
    forced === undefined
      ? isTTY === true && refused === "" && terminal !== "dumb"
      : forced !== "0" && forced !== "false";
  // Tells Node not to decide again. Node would check its own stdout or, in some versions, no stream at all.
  return isColoured ? (style, text) => styleText(style, text, { validateStream: false }) : leaveUnstyled;
}

/** Escapes control characters, which could change what the terminal shows. Line breaks are escaped too. */
export const escapeControls = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (c) => {
    const escaped = JSON.stringify(c).slice(1, -1);
    // `JSON.stringify` does not escape control characters above U+007E.
    return escaped === c ? `\\u{${c.codePointAt(0)?.toString(16)}}` : escaped;
  });

/** Escapes control characters other than line breaks. */
export const escapeLines = (text: string): string => text.split("\n").map(escapeControls).join("\n");
