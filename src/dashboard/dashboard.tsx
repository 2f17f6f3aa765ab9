import { render } from "preact";
import { ignoreSecondClicks } from "./app/ignore-second-clicks.ts";
import { keepFocus } from "./app/keep-focus.ts";
import { Shell } from "./app/shell.tsx";
import { holdRequestsOfExpiredKey } from "./requests.ts";
import { applyTheme, readTheme } from "./app/stored-theme.ts";

applyTheme(readTheme());
holdRequestsOfExpiredKey();
ignoreSecondClicks();
keepFocus();
const place = document.querySelector("#app");
if (place !== null) render(<Shell />, place);
