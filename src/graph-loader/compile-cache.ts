import module from "node:module";

/** Enables Node's compile cache, which speeds up later starts (Node 22.8 and later). */
export function enableCompileCache(): void {
  (module as { enableCompileCache?: () => unknown }).enableCompileCache?.();
}
