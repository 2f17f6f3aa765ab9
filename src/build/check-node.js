// Exits with 1 on an unsupported version of Node, because tsx and vitest would fail with a message that does not name the cause. This file
// MUST parse on older versions of Node too. For users of the package, `src/cli.ts` has the same check.
const { node } = process.versions;
const [major = 0, minor = 0] = node.split(".").map(Number);
const isSupported = major >= 22 || (major === 21 && minor >= 7) || (major === 20 && minor >= 19);

if (!isSupported) {
  const needed = major === 21 ? "20.19, 21.7, or 22 and later" : "20.19 or later";
  process.stderr.write(`heddle: needs Node ${needed}; this is Node ${node} (${process.execPath})\n`);
  process.exitCode = 1;
}
