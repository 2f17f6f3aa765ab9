#!/usr/bin/env node
// There are no static imports: older versions of Node would fail to link them, with a SyntaxError, before the check below runs.
// `build/check-node.js` has the same check for the scripts of this package.
const { node } = process.versions;
const [major = 0, minor = 0] = node.split(".").map(Number);
// `hash` of node:crypto exists in Node 20 from 20.12 on, but in Node 21 only from 21.7 on.
const isSupported = major >= 22 || (major === 21 && minor >= 7) || (major === 20 && minor >= 19);

if (isSupported) void import("./cli/main.ts").then(({ main }) => main());
else {
  const needed = major === 21 ? "20.19, 21.7, or 22 and later" : "20.19 or later";
  process.stderr.write(`heddle: needs Node ${needed}; this is Node ${node} (${process.execPath})\n`);
  process.exitCode = 1;
}
