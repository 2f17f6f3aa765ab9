import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** Bytes of the files in a folder. A file that is deleted meanwhile, as LevelDB does, counts as 0. */
export async function folderSize(folder: string): Promise<number> {
  const names = await readdir(folder);
  const sizes = await Promise.all(
    names.map((name) => stat(join(folder, name)).then(({ size }) => size, gone)),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

function gone(cause: unknown): number {
  if ((cause as { readonly code?: unknown }).code === "ENOENT") return 0;
  throw cause;
}
