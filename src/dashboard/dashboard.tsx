import { render } from "preact";
import { Shell } from "./app/shell.tsx";
import { applyTheme } from "./app/theme.ts";

applyTheme();
const place = document.querySelector("#app");
if (place !== null) render(<Shell />, place);
