import { styleText } from "node:util";

/** What is asked of an output stream: `process.stdout` and `process.stderr` are such. */
export interface OutputStream {
  readonly isTTY?: boolean;
  /** Characters in a line of the terminal. */
  readonly columns?: number;
  write(text: string): unknown;
}

type Env = { readonly [name: string]: string | undefined };
type Style = Parameters<typeof styleText>[0];

/** Gives a text colours and the like, or leaves it as it is. */
export type ApplyStyle = (style: Style, text: string) => string;

export const withoutStyle: ApplyStyle = (_, text) => text;

/**
 * How text for this stream is painted: in colours on a terminal, except with `NO_COLOR` or on a terminal that has none. `FORCE_COLOR` wins
 * over all of it: 0 or false for no colours, anything else for colours.
 */
export function applyStyleFor({ isTTY }: Pick<OutputStream, "isTTY">, env: Env): ApplyStyle {
  const { FORCE_COLOR: forced, NO_COLOR: refused = "", TERM: terminal } = env;
  const isColoured =
    forced === undefined
      ? isTTY === true && refused === "" && terminal !== "dumb"
      : forced !== "0" && forced !== "false";
  // What decides is above: Node would ask its own stdout, and in some versions nobody.
  return isColoured ? (style, text) => styleText(style, text, { validateStream: false }) : withoutStyle;
}

/** Escapes control characters, which could change what the terminal shows; line breaks too. */
export const escapeControls = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (c) => {
    const escaped = JSON.stringify(c).slice(1, -1);
    // JSON leaves those above U+007E as they are.
    return escaped === c ? `\\u{${c.codePointAt(0)?.toString(16)}}` : escaped;
  });

/** The same, and keeps line breaks. */
export const escapeLines = (text: string): string => text.split("\n").map(escapeControls).join("\n");
