// What the native program put into the page: a document about the report, and a table that is unpacked column by column.

export interface ColumnInfo {
  name: string;
  id: string;
  kind: "f32" | "f64" | "text";
}

export interface Cause {
  name: string;
  text: string;
  residual_error: number;
}

export interface Finding {
  verdict: string;
  token_id: string;
  data_id: string;
  operation: string;
  rank: string | null;
  layer: number | null;
  error: number | string;
  noise: number | string;
  measured_on: string;
  causes: Cause[];
  not_paired: string[];
  rows_that_follow: number;
  reason: string;
  threshold: string;
}

export interface FindingFacts {
  row: number;
  sources: number[];
  input_error: number | string;
  gain: number | string;
  floor: number | string;
  factor: number | string;
  peers: number;
  tokens: number;
  ranks: number;
}

export interface Detail {
  row: number;
  elements: number;
  histogram: { low: number | string; high: number | string; golden: number[]; my: number[] };
  map: { rows: number; columns: number; map_rows: number; map_columns: number; errors: (number | string)[] };
  worst: { index: number; row: number; column: number; golden: number | string; my: number | string }[];
}

export interface Coverage {
  operations: number;
  paired: number;
  same_as_paired: number;
  unpaired: Record<string, number>;
}

// What is known of a comparison as a whole.
export interface Note {
  command?: string;
  version?: string;
  made?: string;
  noise?: string;
  recordings?: Record<string, { complete: boolean | null; doubts: string[] }>;
  pairing?: {
    my: Coverage; golden: Coverage; certain: number; likely: number; method: string; golden_layers?: number; my_layers?: number;
    tokens?: { token: string; golden_folder: string; my_folder: string; phase: string }[]; notes?: string[];
  };
}

export function noteOf(about: About): Note {
  try {
    return about.note ? (JSON.parse(about.note) as Note) : {};
  } catch {
    return {};
  }
}

export interface About {
  kind: string;
  version: string;
  made: string;
  command?: string;
  report: string;
  rows: number;
  complete?: boolean;
  in_order?: boolean;
  counts?: { summary: Record<string, number> };
  findings?: Finding[];
  finding_facts?: FindingFacts[];
  details?: Detail[];
  manifests: { side: string; path: string; text: string }[];
  note?: string; // JSON of a Note
  noise?: string; // the run that noise was measured of
  table: { rows: number; columns: ColumnInfo[] };
}

// JSON has no NaN or infinity; the program writes "nan", "inf", "-inf".
export function real(value: number | string | null | undefined): number {
  if (typeof value === "number") return value;
  if (value === "inf") return Infinity;
  if (value === "-inf") return -Infinity;
  return NaN;
}

// The parts of the report, as they stood in the document.
const parts = new Map<string, string>();

async function section(id: string): Promise<Uint8Array> {
  const packed64 = parts.get(id);
  if (packed64 === undefined) throw new Error(`the page lacks its part ${id}`);
  parts.delete(id); // it is unpacked once
  const text = atob(packed64);
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function json<T>(id: string): Promise<T> {
  return JSON.parse(new TextDecoder().decode(await section(id))) as T;
}

// Bytes come plane by plane: the first bytes of all values, then the second ones.
function unplaned(bytes: Uint8Array, width: number): ArrayBuffer {
  const count = bytes.length / width;
  const out = new Uint8Array(bytes.length);
  for (let k = 0; k < width; ++k) {
    const plane = k * count;
    for (let i = 0, at = k; i < count; ++i, at += width) out[at] = bytes[plane + i];
  }
  return out.buffer;
}

const MISSING_32 = 0x7fc00a17;
const MISSING_64_LOW = 0x00000a17;
const MISSING_64_HIGH = 0x7ff80000;

export abstract class Column {
  constructor(readonly name: string) {}
  abstract readonly isNumber: boolean;
  abstract has(row: number): boolean;
  abstract number(row: number): number; // NaN where there is none
  abstract text(row: number): string; // "" where there is none
}

class Numbers extends Column {
  readonly isNumber = true;
  private readonly bits: Uint32Array;
  constructor(name: string, private readonly values: Float32Array | Float64Array) {
    super(name);
    this.bits = new Uint32Array(values.buffer);
  }
  has(row: number): boolean {
    if (this.values instanceof Float32Array) return this.bits[row] !== MISSING_32;
    return this.bits[2 * row] !== MISSING_64_LOW || this.bits[2 * row + 1] !== MISSING_64_HIGH;
  }
  number(row: number): number {
    return this.values[row];
  }
  text(row: number): string {
    if (!this.has(row)) return "";
    const value = this.values[row];
    if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
    return this.values instanceof Float32Array ? String(Number(value.toPrecision(8))) : String(value);
  }
}

export class Texts extends Column {
  readonly isNumber = false;
  constructor(name: string, readonly indices: Uint32Array, readonly values: string[]) {
    super(name);
  }
  has(row: number): boolean {
    return this.indices[row] !== 0;
  }
  number(): number {
    return NaN;
  }
  text(row: number): string {
    return this.values[this.indices[row]];
  }
}

export class Table {
  private readonly columns = new Map<string, Promise<Column>>();
  private readonly loaded = new Map<string, Column>();
  constructor(readonly rows: number, readonly infos: ColumnInfo[]) {}

  get names(): string[] {
    return this.infos.map((info) => info.name);
  }
  holds(name: string): boolean {
    return this.infos.some((info) => info.name === name);
  }
  // Unpacks these columns; those that the table lacks are passed over.
  async need(...names: string[]): Promise<void> {
    await Promise.all(names.map((name) => this.load(name)));
  }
  private load(name: string): Promise<Column> | undefined {
    const info = this.infos.find((each) => each.name === name);
    if (!info) return undefined;
    let column = this.columns.get(name);
    if (!column) {
      column = unpack(info).then((done) => {
        this.loaded.set(name, done);
        return done;
      });
      this.columns.set(name, column);
    }
    return column;
  }
  // One that need() has brought.
  column(name: string): Column | undefined {
    return this.loaded.get(name);
  }
  text(name: string, row: number): string {
    return this.loaded.get(name)?.text(row) ?? "";
  }
  number(name: string, row: number): number {
    const column = this.loaded.get(name);
    return column?.has(row) ? column.number(row) : NaN;
  }
}

async function unpack(info: ColumnInfo): Promise<Column> {
  if (info.kind === "f32") return new Numbers(info.name, new Float32Array(unplaned(await section(info.id), 4)));
  if (info.kind === "f64") return new Numbers(info.name, new Float64Array(unplaned(await section(info.id), 8)));
  const [indices, values] = await Promise.all([section(info.id), json<string[]>(info.id + "t")]);
  return new Texts(info.name, new Uint32Array(unplaned(indices, 4)), values);
}

export async function load(): Promise<{ about: About; table: Table }> {
  for (const element of document.querySelectorAll<HTMLElement>("script[type='text/plain']")) {
    parts.set(element.id.replace(/^ait-/, ""), element.textContent ?? "");
    element.remove();
  }
  const about = await json<About>("about");
  return { about, table: new Table(about.table.rows, about.table.columns) };
}
