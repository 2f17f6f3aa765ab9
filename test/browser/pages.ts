import { build } from "../config/process.ts";

/**
 * Builds the package with its pages before the tests in a browser. Some of them start servers of the package: if one of
 * them built it, the pages would be missing for a while in all other tests.
 */
export default async function buildPages(): Promise<void> {
  await build();
}
