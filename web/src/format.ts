// Numbers as a person reads them.

export function number(value: number, digits = 3): string {
  if (Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e7) return String(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(digits - 1).replace("e+", "e");
  return String(Number(value.toPrecision(digits)));
}

export function count(value: number): string {
  return value.toLocaleString("en").replaceAll(",", "\u202f");
}

export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let k = 0;
  for (; value >= 1024 && k < units.length - 1; ++k) value /= 1024;
  return `${number(value)} ${units[k]}`;
}

export function csvCell(text: string): string {
  // A spreadsheet must not run a cell.
  const safe = /^[+\-=%@\t\r\n＋－＝％＠]/.test(text) && Number.isNaN(Number(text)) ? "'" + text : text;
  return /[",\n\r]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
}

// A word as it can be typed in a shell.
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : "'" + text.replaceAll("'", "'\\''") + "'";
}

// 0 to 1 as a colour from calm to alarming; t < 0 is "nothing there".
const LIGHT = [[232, 238, 244], [158, 202, 225], [253, 216, 112], [242, 142, 43], [178, 24, 43]];
const DARK = [[37, 50, 62], [49, 104, 142], [196, 158, 48], [226, 116, 32], [240, 72, 72]];
export function heat(t: number, dark: boolean): string {
  const stops = dark ? DARK : LIGHT;
  const at = Math.min(Math.max(t, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  const part = at - low;
  const mix = [0, 1, 2].map((k) => Math.round(stops[low][k] * (1 - part) + stops[low + 1][k] * part));
  return `rgb(${mix.join(",")})`;
}

// Times the expected error to 0…1: 1 is a quarter, a fault (4 times) is red, 100 times and more is the end.
export function heatOfExcess(excess: number): number {
  if (Number.isNaN(excess)) return -1;
  if (!Number.isFinite(excess)) return 1;
  if (excess <= 0) return 0;
  const t = Math.log10(excess);
  return t < 0 ? Math.max(0, 0.25 + t * 0.25) : Math.min(1, 0.25 + t * 0.5);
}
