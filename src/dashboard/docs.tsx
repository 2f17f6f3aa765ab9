import { render } from "preact";
import { applyTheme } from "./app/theme.ts";
import { DocsPage } from "./docs/page.tsx";

applyTheme();
const place = document.querySelector("#app");
if (place !== null) render(<DocsPage />, place);
