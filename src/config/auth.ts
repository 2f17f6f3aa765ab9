import { isObject, type JsonObject } from "../model/json.ts";
import { parseUrl } from "../model/url.ts";

/** Authentication by access tokens of an identity provider (OpenID Connect). */
export interface JwtConfig {
  /** The value of `iss` that tokens must have. */
  readonly issuer: string;
  /** The value of `aud` that tokens must have. Of several values, one is enough. */
  readonly audience: string | readonly string[];
  /** The provider's public keys as a JSON Web Key Set: its URL, the absolute path of a file with it, or the set itself. */
  readonly jwks:
    | { readonly kind: "url"; readonly url: URL }
    | { readonly kind: "file"; readonly file: string }
    | { readonly kind: "set"; readonly set: JsonObject };
}

/** The section `auth` of a configuration file, checked. `File` is the type of a reference to a module's export. */
export interface AuthConfig<File> {
  /** How users are authenticated: by the project's own handlers, or by access tokens (`jwt`). */
  readonly users: { readonly kind: "handlers"; readonly file: File } | ({ readonly kind: "jwt" } & JwtConfig);
  /** Whether `heddle dev` accepts requests of LangGraph Studio without credentials, as those of a special user. */
  readonly studioUser: boolean;
}

interface Read<File> {
  /** Parses a reference such as `"./file.ts:export"`. `at` is the configuration key that contains it, for error messages. */
  readonly module: (text: string, at: string) => File;
  /** Returns the absolute path of a data file. */
  readonly data: (text: string) => string;
}

/**
 * Reads the section `auth`; undefined if it is empty or has only `disable_studio_auth`. If a key is invalid, calls `refuse` with the key
 * and what is wrong.
 */
export function parseAuthConfig<File>(
  auth: JsonObject,
  read: Read<File>,
  refuse: (what: string) => never,
): AuthConfig<File> | undefined {
  const { path, jwt } = auth;
  const disabled = auth["disable_studio_auth"] ?? false;
  if (typeof disabled !== "boolean") return refuse("auth.disable_studio_auth must be true or false");
  const studioUser = !disabled;
  const isGiven = (value: unknown) => value !== undefined && value !== null;
  if (isGiven(path) && isGiven(jwt)) return refuse("auth has both path and jwt: users come from one of them");
  if (isGiven(jwt)) {
    if (!isObject(jwt)) return refuse("auth.jwt must be an object");
    return { users: { kind: "jwt", ...parseJwt(jwt, read, refuse) }, studioUser };
  }
  if (isGiven(path)) {
    if (typeof path !== "string" || path === "") return refuse('auth.path must be "./auth.ts:export"');
    return { users: { kind: "handlers", file: read.module(path, "auth.path") }, studioUser };
  }
  // A section with other keys but without users is refused: its author expects a protected server, but the server would be open to
  // everybody.
  if (Object.keys(auth).some((key) => key !== "disable_studio_auth"))
    return refuse("auth names no users: it needs path, the file of the handlers, or jwt");
  return undefined;
}

function parseJwt<File>(jwt: JsonObject, read: Read<File>, refuse: (what: string) => never): JwtConfig {
  const { issuer, audience, jwks } = jwt;
  const isText = (value: unknown): value is string => typeof value === "string" && value !== "";
  if (!isText(issuer)) return refuse("auth.jwt.issuer must be the issuer's URL, as tokens have it in iss");
  const isList = Array.isArray(audience) && audience.length > 0 && audience.every(isText);
  if (!isText(audience) && !isList)
    return refuse("auth.jwt.audience must be the text that tokens have in aud, or a list of such texts");
  const keys = audience as string | readonly string[];
  if (isObject(jwks)) {
    if (!Array.isArray(jwks["keys"])) return refuse("auth.jwt.jwks must be a key set with the list keys");
    return { issuer, audience: keys, jwks: { kind: "set", set: jwks } };
  }
  if (!isText(jwks))
    return refuse(
      "auth.jwt.jwks must be the URL of a key set, the path of a file with one, or the set itself",
    );
  if (!/^[a-z]+:\/\//i.test(jwks))
    return { issuer, audience: keys, jwks: { kind: "file", file: read.data(jwks) } };
  const url = parseUrl(jwks);
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && isLocal(url.hostname));
  // The URL must be HTTPS, unless it is on this machine: whoever can change the keys on their way can pretend to be any user.
  if (url === undefined || !isSafe)
    return refuse("auth.jwt.jwks must be an https URL (http on this machine)");
  return { issuer, audience: keys, jwks: { kind: "url", url } };
}

const isLocal = (host: string): boolean => host === "localhost" || host === "127.0.0.1" || host === "[::1]";
