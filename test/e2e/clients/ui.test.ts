import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import type { Config } from "../../../src/config/config.ts";
import { proves } from "./table.ts";

interface Components {
  getComponent(assistantId: string, name: string): Promise<string>;
}

const card = fileURLToPath(new URL("../../fixtures/components.ts", import.meta.url));
const config: Config = {
  path: card,
  graphs: {},
  env: {},
  components: { files: { agent: card }, shared: [] },
};

proves(
  "~ui",
  {
    getComponent: [
      "gives the HTML that loads a component",
      async ({ client }) => {
        const html = await (client["~ui"] as unknown as Components).getComponent("agent", "card");
        expect(html).toContain('__LGUI_agent.render("card", "{{shadowRootId}}")');
      },
    ],
  },
  () => ({ config }),
);
