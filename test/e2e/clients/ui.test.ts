import { proves } from "./table.ts";

interface Components {
  getComponent(assistantId: string, name: string): Promise<string>;
}

proves("~ui", {
  getComponent: {
    unserved: "React components of the project would have to be built by the server, which builds none",
    ask: ({ client }) => (client["~ui"] as unknown as Components).getComponent("agent", "card"),
  },
});
