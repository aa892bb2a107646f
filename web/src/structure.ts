// The operations of both sides in one token: what they are called, how values flow between them, and who is whose partner.
import type { App } from "./app";

export type Side = "golden" | "my";
export const SIDES: Side[] = ["golden", "my"];

export interface Operation {
  side: Side;
  name: string;
  group: string; // the layer or, without layers, the start of its name; "": drawn for itself
  verdict: number; // the worst of its rows, as Model.verdictOf
  row: number; // that row
  rows: number[];
  partners: Set<string>; // on the other side
  sources: Set<string>; // on its own side
}

export type Operations = Map<string, Operation>; // by name, in the order of the computation

// More operations than this are put together by the start of their names where there are no layers.
const MOST_LOOSE = 150;

export class Structure {
  readonly golden: Operations = new Map();
  readonly my: Operations = new Map();

  constructor(private readonly app: App, readonly token: number) {
    const { model } = app;
    const rows = model.rowsOfToken(token);
    for (const row of rows) {
      const names = this.names(row);
      for (const side of SIDES) if (names[side]) this.add(side, names[side], row);
      if (!names.golden || !names.my) continue;
      this.my.get(names.my)!.partners.add(names.golden);
      this.golden.get(names.golden)!.partners.add(names.my);
    }
    for (const row of rows)
      for (const source of model.sources(row))
        for (const side of SIDES) {
          // Only my side's flow is known; golden's is the same between the partners.
          const to = this.names(row)[side];
          const from = this.names(source)[side];
          if (to && from && to !== from) this[side].get(to)!.sources.add(from);
        }
    for (const side of SIDES) this.putTogether(this[side]);
  }

  // What a row is about on either side; "" where that side has nothing.
  names(row: number): Record<Side, string> {
    const { table, model } = this.app;
    const missing = table.text("missing", row);
    const name = (side: Side) => (missing === side ? "" : table.text(`${side}_operation`, row) || model.operation(row));
    return { golden: name("golden"), my: name("my") };
  }

  private add(side: Side, name: string, row: number): void {
    const { model } = this.app;
    const known = this[side].get(name);
    if (!known) {
      const layer = model.layer(row);
      this[side].set(name, {
        side, name, group: Number.isNaN(layer) ? "" : `layer ${layer}`, verdict: model.verdictOf[row], row, rows: [row], partners: new Set(), sources: new Set(),
      });
      return;
    }
    known.rows.push(row);
    if (model.verdictOf[row] > known.verdict || (model.verdictOf[row] === known.verdict && model.excess(row) > model.excess(known.row))) {
      known.verdict = model.verdictOf[row];
      known.row = row;
    }
  }

  private putTogether(operations: Operations): void {
    const loose = [...operations.values()].filter((each) => each.group === "");
    if (loose.length > MOST_LOOSE) for (const each of loose) each.group = pathOf(each.name).slice(0, 2).join(".");
  }
}

// "root.model.layers" and "3_Layer/1_Attention" are paths of modules.
export function pathOf(name: string): string[] {
  return name.split(name.includes("/") ? "/" : ".");
}
