// What the rows of a comparison are about: tokens, operations in their order, layers, and how values flow.
import type { About, Detail, Table } from "./data";
import { Texts } from "./data";

export const VERDICTS = ["identical", "noise", "suspicious", "fault", "broken"] as const;
export type Verdict = (typeof VERDICTS)[number] | "";

export const SIGNS: Record<string, string> = { identical: "=", noise: "≈", suspicious: "?", fault: "✕", broken: "⚡", "": "·" };

export class Model {
  readonly tokens: string[] = [];
  readonly tokenOf: Uint32Array;
  readonly places: string[] = []; // different data_id, in the order in which they first come
  readonly placeOf: Uint32Array;
  readonly verdictOf: Uint8Array; // index into VERDICTS + 1; 0: none
  private cells: Map<number, number> | undefined; // row of token × place, once somebody asks
  readonly details = new Map<number, Detail>();

  constructor(readonly about: About, readonly table: Table) {
    const rows = table.rows;
    this.tokenOf = numbered(table, "token_id", rows, this.tokens);
    this.placeOf = numbered(table, "data_id", rows, this.places);
    this.verdictOf = new Uint8Array(rows);
    const verdict = table.column("verdict");
    if (verdict instanceof Texts) {
      const codes = verdict.values.map((word) => (VERDICTS as readonly string[]).indexOf(word) + 1);
      for (let i = 0; i < rows; ++i) this.verdictOf[i] = codes[verdict.indices[i]];
    }
    for (const detail of about.details ?? []) this.details.set(detail.row, detail);
  }

  // The row of a token and a place; -1 where there is none.
  rowAt(token: number, place: number): number {
    if (!this.cells) {
      this.cells = new Map();
      for (let i = this.table.rows - 1; i >= 0; --i) this.cells.set(this.tokenOf[i] * this.places.length + this.placeOf[i], i);
    }
    return this.cells.get(token * this.places.length + place) ?? -1;
  }
  rowsOfToken(token: number): number[] {
    const out: number[] = [];
    for (let i = 0; i < this.table.rows; ++i) if (this.tokenOf[i] === token) out.push(i);
    return out;
  }
  verdict(row: number): Verdict {
    const code = this.verdictOf[row];
    return code === 0 ? "" : VERDICTS[code - 1];
  }
  error(row: number): number {
    const judged = this.table.number("verdict_error", row);
    return Number.isNaN(judged) ? this.table.number("relative_euclidean_distance", row) : judged;
  }
  expected(row: number): number {
    return this.table.number("verdict_expected", row);
  }
  // How many times farther off than a healthy value would be.
  excess(row: number): number {
    if (this.verdict(row) === "broken") return Infinity;
    const error = this.error(row);
    const expected = this.expected(row);
    if (!(expected > 0)) return error;
    return error / expected;
  }
  operation(row: number): string {
    return this.table.text("subject", row) || this.table.text("data_id", row);
  }
  layer(row: number): number {
    return this.table.number("layer", row);
  }
  // Rows that went into it.
  sources(row: number): number[] {
    const text = this.table.text("sources", row);
    if (!text) return [];
    return text.split(" ").map((back) => row - Number(back)).filter((each) => each >= 0 && each < row);
  }
  hasLayers(): boolean {
    return this.table.holds("layer");
  }
  get firstFinding(): number {
    const row = this.about.finding_facts?.[0]?.row;
    return row !== undefined && row < this.table.rows ? row : -1;
  }
  // The worst rows, at most so many.
  worst(most: number): number[] {
    const rows: number[] = [];
    const excesses: number[] = [];
    for (let i = 0; i < this.table.rows; ++i) {
      if (this.verdictOf[i] === 1) continue;
      const excess = this.excess(i);
      if (!(excess > 0) || (rows.length === most && excess <= excesses[most - 1])) continue;
      let at = rows.length;
      while (at > 0 && excesses[at - 1] < excess) --at;
      rows.splice(at, 0, i);
      excesses.splice(at, 0, excess);
      rows.length = excesses.length = Math.min(rows.length, most);
    }
    return rows;
  }
}

function numbered(table: Table, name: string, rows: number, out: string[]): Uint32Array {
  const numbers = new Uint32Array(rows);
  const column = table.column(name);
  if (!(column instanceof Texts)) {
    // Numbers, or no such column: all rows alike.
    const seen = new Map<string, number>();
    for (let i = 0; i < rows; ++i) {
      const text = column?.text(i) ?? "";
      if (!seen.has(text)) seen.set(text, out.push(text) - 1);
      numbers[i] = seen.get(text)!;
    }
    return numbers;
  }
  const known = new Int32Array(column.values.length).fill(-1);
  for (let i = 0; i < rows; ++i) {
    const index = column.indices[i];
    if (known[index] < 0) known[index] = out.push(column.values[index]) - 1;
    numbers[i] = known[index];
  }
  return numbers;
}
