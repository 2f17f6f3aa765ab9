import { render } from "preact";
import { Shell } from "./app/shell.tsx";
import { applyTheme, readTheme } from "./app/stored-theme.ts";

applyTheme(readTheme());
const place = document.querySelector("#app");
if (place !== null) render(<Shell />, place);
