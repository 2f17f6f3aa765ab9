/** A source file, read without a parser, because TypeScript 7 offers none to JavaScript. */
export interface Source {
  readonly path: string;
  /** Without comments; strings, templates and regular expressions are emptied, but the code in `${}` is kept. */
  readonly code: string;
  /** All imports and re-exports, including types and dynamic imports. */
  readonly imports: readonly string[];
}

/** Comments, strings, templates, and regular expressions at positions where one can begin. */
const TOKEN =
  /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`|\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[dgimsuvy]*|[{}]/g;

/** Every string is `""` here, so that the content of a string never counts as an import. */
const STRING = /((?<![.\w])(?:from\s*|import\s*\(?\s*))?""/g;

/** A slash after one of these begins a regular expression; after anything else it is a division. */
const BEFORE_REGEX = /(?:^|[(,=:[!&|?{};+\-*%<>~^]|\b(?:return|typeof|case|in|of|void|throw))\s*$/;

export function read(path: string, text: string): Source {
  const { code, strings } = strip(text);
  const imports = [...code.matchAll(STRING)].flatMap(([, from], i) =>
    from === undefined ? [] : [strings[i] ?? ""],
  );
  return { path, code, imports };
}

/** The code, and the contents of its strings in order. */
function strip(text: string): { code: string; strings: readonly string[] } {
  let code = "";
  const strings: string[] = [];
  const add = (piece: string) => {
    code += piece;
  };
  /** Open braces; a template's `${` is marked, so that its `}` leads back into the text. */
  const braces: ("{" | "${")[] = [];
  let at = 0;
  const template = () => {
    for (; at < text.length; at++) {
      const char = text[at];
      if (char === "\\") at++;
      else if (char === "`") return void at++;
      else if (char === "$" && text[at + 1] === "{") {
        braces.push("${");
        at += 2;
        return add(" (");
      }
    }
  };
  while (at < text.length) {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    if (match === null) {
      add(text.slice(at));
      break;
    }
    const [token] = match;
    add(text.slice(at, match.index));
    at = match.index + token.length;
    if (token === "`") {
      template();
    } else if (token === "{") {
      braces.push("{");
      add(token);
    } else if (token === "}") {
      if (braces.pop() === "${") {
        add(") ");
        template();
      } else add(token);
    } else if (token.startsWith("//") || token.startsWith("/*")) {
      add(" ");
    } else if (token.startsWith("/")) {
      if (BEFORE_REGEX.test(code)) add(" 0 ");
      else {
        // A division: only the slash is consumed.
        add("/");
        at = match.index + 1;
      }
    } else {
      add('""');
      strings.push(token.slice(1, -1));
    }
  }
  return { code, strings };
}
