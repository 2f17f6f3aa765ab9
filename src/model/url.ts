/**
 * Parses a URL; undefined when the text is not a URL. It does not use `URL.canParse`: in Node 22, that function returns false for URLs with
 * letters beyond ASCII once V8 has optimised it (22.23.3, seen on 2026-11-24 after some 6,000 calls).
 */
export function parseUrl(text: string, base?: string): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}
