import type { Client } from "@tidegate/client/source"
import { type Entry, entryOf, type Kind, kinds, type Names, referred, type Row } from "./Entries.ts"

/** The gateway's resources, by name. */
export type Inventory = Readonly<Record<Kind, ReadonlyMap<string, { readonly row: Row; readonly entry: Entry }>>>

/** All of a kind. The order by name is one that no change of a resource's settings moves, so that none is missed between two pages. */
const everything = async (client: Client, kind: Kind, signal: AbortSignal): Promise<ReadonlyArray<Row>> => {
  const query = { limit: 255, order_by: "name", dir: "asc" } as const
  return (await Array.fromAsync(client.list(`/${kind}`, { params: { query }, signal }))) as unknown as Array<Row>
}

export const takeInventory = async (client: Client, signal: AbortSignal): Promise<Inventory> => {
  const rows: Partial<Record<Kind, ReadonlyArray<Row>>> = {}
  for (const kind of kinds) rows[kind] = await everything(client, kind, signal)
  const names = Object.fromEntries(
    referred.map(({ kind }) => [kind, new Map(rows[kind]!.map(({ id, name }) => [id, name]))])
  ) as unknown as Names
  return Object.fromEntries(
    kinds.map((kind) => [
      kind,
      new Map(
        rows[kind]!.toSorted((left, right) => (left.name < right.name ? -1 : 1)).map((row) => [
          row.name,
          { row, entry: entryOf(kind, row, names) }
        ])
      )
    ])
  ) as unknown as Inventory
}
