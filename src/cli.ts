#!/usr/bin/env node
// No static imports: an older Node fails to link the rest, with a SyntaxError, before a line of it has run. The same check for scripts of
// this package is `build/check-node.js`.
const { node } = process.versions;
const [major = 0, minor = 0] = node.split(".").map(Number);
// `hash` of node:crypto came to Node 21 with 21.7.
const isSupported = major >= 22 || (major === 21 && minor >= 7) || (major === 20 && minor >= 19);

if (isSupported) void import("./cli/main.ts").then(({ main }) => main());
else {
  const needed = major === 21 ? "20.19, 21.7, or 22 and later" : "20.19 or later";
  process.stderr.write(`heddle: needs Node ${needed}; this is Node ${node} (${process.execPath})\n`);
  process.exitCode = 1;
}
