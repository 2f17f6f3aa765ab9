import { render } from "preact";
import { Shell } from "./app/shell.tsx";
import { holdRequestsOfExpiredKey } from "./requests.ts";
import { applyTheme, readTheme } from "./app/stored-theme.ts";

applyTheme(readTheme());
holdRequestsOfExpiredKey();
const place = document.querySelector("#app");
if (place !== null) render(<Shell />, place);
