import { ServiceError } from "../../src/model/errors.ts";
import { lockDirectory } from "../../src/storage/directory-lock.ts";

/** Another process: tries to lock the directory for each line that it receives, and prints the result. */
const [, , directory = ""] = process.argv;
process.stdin.setEncoding("utf8").on("data", () => {
  try {
    lockDirectory(directory);
    process.stdout.write("locked\n");
  } catch (error) {
    process.stdout.write(`${error instanceof ServiceError ? error.code : String(error)}\n`);
  }
});
process.stdout.write("ready\n");
