/** A chart that is fitted to its box is not shrunk below this scale. The user can zoom out to half of it. */
const MIN_FITTED_SCALE = 0.5;
/** The factor by which one click on a zoom button changes the scale. */
const ZOOM_FACTOR = 1.3;
/** The largest scale to which the user can zoom in. */
const MAX_SCALE = 3;

/**
 * Scales a chart to the width of its box, or as the user chooses. When the highlighted states change, scrolls to the
 * last one if it is out of view.
 */
export class ChartZoom {
  /** The toolbar with the zoom buttons. */
  readonly bar: HTMLElement;
  readonly #box: HTMLElement;
  readonly #watch: ResizeObserver;
  /**
   * The scale that the user has chosen; null if the chart is fitted: a chart wider than its box is shrunk, others keep
   * their size.
   */
  #scale: number | null = null;
  #lit = "";

  constructor(box: HTMLElement) {
    this.#box = box;
    this.bar = document.createElement("div");
    this.bar.className = "zoom";
    this.bar.setAttribute("role", "group");
    this.bar.setAttribute("aria-label", "Zoom");
    const button = (text: string, label: string, act: () => void) => {
      const made = document.createElement("button");
      made.type = "button";
      made.className = "quiet";
      made.textContent = text;
      made.setAttribute("aria-label", label);
      made.addEventListener("click", act);
      this.bar.append(made);
    };
    button("−", "Zoom out", () => this.#to(this.#now / ZOOM_FACTOR));
    button("Fit", "Fit", () => this.#to(null));
    button("+", "Zoom in", () => this.#to(this.#now * ZOOM_FACTOR));
    this.#watch = new ResizeObserver(() => this.#size());
    this.#watch.observe(box);
  }

  close(): void {
    this.#watch.disconnect();
  }

  /** Applies the scale, and scrolls to the last highlighted state if the highlighted states have changed. */
  show(): void {
    this.#size();
    const lit = this.#box.querySelectorAll<SVGElement>(".lit");
    const key = [...lit].map(({ dataset }) => dataset["state"]).join();
    if (key === this.#lit) return;
    this.#lit = key;
    this.#follow(lit[lit.length - 1]);
  }

  get #svg(): SVGSVGElement | null {
    return this.#box.querySelector("svg");
  }

  get #now(): number {
    return this.#scale ?? this.#fitting();
  }

  #fitting(): number {
    const { width = 1 } = this.#svg?.viewBox.baseVal ?? {};
    const style = getComputedStyle(this.#box);
    const room = this.#box.clientWidth - Number.parseFloat(style.paddingLeft) * 2;
    return Math.max(MIN_FITTED_SCALE, Math.min(1, room / width));
  }

  #to(scale: number | null): void {
    this.#box.classList.toggle("zoomed", scale !== null);
    this.#scale = scale === null ? null : Math.min(MAX_SCALE, Math.max(MIN_FITTED_SCALE / 2, scale));
    this.#lit = "";
    this.show();
  }

  #size(): void {
    const svg = this.#svg;
    if (svg === null || this.#box.clientWidth === 0) return;
    const { width, height } = svg.viewBox.baseVal;
    const scale = this.#now;
    svg.style.width = `${Math.floor(width * scale)}px`;
    svg.style.height = `${Math.floor(height * scale)}px`;
  }

  #follow(element: SVGElement | undefined): void {
    if (element === undefined) return;
    const [inner, outer] = [element.getBoundingClientRect(), this.#box.getBoundingClientRect()];
    const isIn =
      inner.left >= outer.left &&
      inner.right <= outer.right &&
      inner.top >= outer.top &&
      inner.bottom <= outer.bottom;
    if (isIn) return;
    this.#box.scrollBy({
      left: inner.left + inner.width / 2 - (outer.left + outer.width / 2),
      top: inner.top + inner.height / 2 - (outer.top + outer.height / 2),
    });
  }
}
