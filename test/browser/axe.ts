import axe from "axe-core";
import type { Page } from "playwright-core";

interface Fault {
  readonly id: string;
  readonly impact: string | null;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

/** The rules that find something else in other colours. */
const COLOUR_RULES = ["color-contrast", "link-in-text-block"];

/**
 * The serious findings of axe-core in the page as it is now, one line each.
 * @param colours only those of rules about colours: no other rule depends on the colour scheme
 */
export async function seriousFaults(page: Page, where: string, { colours = false } = {}): Promise<string[]> {
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(axe.source);
  // What is right is not reported, which saves much time.
  const options = { resultTypes: ["violations"], ...(colours && { runOnly: COLOUR_RULES }) };
  const found = await page.evaluate<readonly Fault[]>(
    `axe.run(${JSON.stringify(options)}).then(({ violations }) => violations)`,
  );
  return found
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${where}: ${id}: ${html.slice(0, 200)}: ${failureSummary}`),
    );
}
