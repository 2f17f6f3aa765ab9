import { render } from "preact";
import { Docs } from "./docs/page.tsx";
import { type OpenApi } from "./docs/openapi.ts";

const place = document.querySelector("#app");
if (place !== null) {
  try {
    const response = await fetch("openapi.json");
    if (!response.ok) throw new Error(`openapi.json: ${response.status}`);
    render(<Docs api={(await response.json()) as OpenApi} />, place);
    // The operation that the address names is there only now.
    document.getElementById(location.hash.slice(1))?.scrollIntoView();
  } catch (cause) {
    place.textContent = `The description could not be read. ${String(cause)}`;
  }
}
