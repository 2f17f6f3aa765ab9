import module from "node:module";

/** What an earlier start has compiled is not compiled again, where Node can do that (22.8 and later). */
export function keepCompiled(): void {
  (module as { enableCompileCache?: () => unknown }).enableCompileCache?.();
}
