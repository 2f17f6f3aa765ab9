export function createElementWithText(tag: string, content: string, className = ""): HTMLElement {
  const element = document.createElement(tag);
  element.textContent = content;
  element.className = className;
  return element;
}
