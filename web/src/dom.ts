// Elements are made of tags, attributes and texts; no html is ever made of text, so that nothing a run holds can be obeyed.

export type Child = Node | string | number | null | undefined | false | Child[];
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: never) => void)>;

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "g", "path", "rect", "text", "title", "line", "polyline", "polygon", "defs", "marker"]);

export function h(tag: string, attributes: Attributes = {}, ...children: Child[]): HTMLElement {
  const element = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.replace(/^on/, ""), value as EventListener);
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, String(value));
  }
  append(element, children);
  return element as HTMLElement;
}

function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : String(child));
  }
}

export function clear(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  append(element, children);
}

// Characters that a browser would obey rather than show (controls, marks of direction, what has no width), as \u202e.
// eslint-disable-next-line no-control-regex
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

export function visible(text: string): string {
  return text.replace(UNSAFE, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

// The start and the end of a text that is too long to show.
export function shortened(text: string, most = 160): string {
  const shown = visible(text);
  if (shown.length <= most) return shown;
  const half = Math.floor((most - 1) / 2);
  return shown.slice(0, half) + "…" + shown.slice(-half);
}

const SHORT = 40; // characters that a table does not break

// A name of outside origin: shown as text, on its own line of reading, whole on demand.
export function name(text: string, most = 160): HTMLElement {
  return h("bdi", { class: text.length <= SHORT ? "name short" : "name", title: text.length > most ? shortened(text, 2000) : null }, shortened(text, most));
}

export function button(label: string, action: () => void, attributes: Attributes = {}): HTMLElement {
  return h("button", { type: "button", onclick: action, ...attributes }, label);
}

export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // A page from disk may not be let near the clipboard in that way.
    const area = h("textarea", { class: "off-screen", "aria-hidden": "true" }) as HTMLTextAreaElement;
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

// For those who do not see what changed.
export function announce(text: string): void {
  const place = document.getElementById("announce");
  if (place) place.textContent = text;
}
