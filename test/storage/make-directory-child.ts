import { makeDirectory } from "../../src/storage/make-directory.ts";

/** Another process: for each number that it receives, makes the directory NUMBER/at/once in a folder, and prints "made" or the error. */
const [, , folder = ""] = process.argv;
process.stdin.setEncoding("utf8").on("data", (number: string) => {
  try {
    makeDirectory(`${folder}/${number.trim()}/at/once`);
    process.stdout.write("made\n");
  } catch (error) {
    process.stdout.write(`${String(error)}\n`);
  }
});
process.stdout.write("ready\n");
