import { render } from "preact";
import { applyTheme, readTheme } from "./app/stored-theme.ts";
import { DocsPage } from "./docs/page.tsx";

applyTheme(readTheme());
const place = document.querySelector("#app");
if (place !== null) render(<DocsPage />, place);
