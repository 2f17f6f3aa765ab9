/** The class of an object with its article, for error messages: "a Map", "an Error"; "a class instance" for a class without a name. */
export function describeInstance(value: object): string {
  const name = value.constructor?.name || "class instance";
  // A "u" mostly sounds like "you": "a URL", "a User", "a Uint8Array".
  return `${/^(?:[aeio]|un(?!i)|up)/i.test(name) ? "an" : "a"} ${name}`;
}
