import type { Client } from "@tidegate/client/source"
import { CliFailure } from "../Failure.ts"
import { type Entry, entryOf, type Kind, kinds, type Names, referred, type Row } from "./Entries.ts"

/** The gateway's resources, by name. */
export type Inventory = Readonly<Record<Kind, ReadonlyMap<string, { readonly row: Row; readonly entry: Entry }>>>

const page = 255

interface Page {
  readonly models: ReadonlyArray<Row>
  readonly has_more?: boolean
}

/**
 * All resources of a kind; null if there are too many. The API returns one page only, so the list is read from both ends of the
 * alphabet, and is complete if the two pages overlap.
 */
const whole = async (
  client: Client,
  kind: Kind,
  narrowed: object,
  signal: AbortSignal
): Promise<ReadonlyArray<Row> | null> => {
  const read = async (dir: "asc" | "desc") =>
    (await client.get(`/${kind}`, {
      params: { query: { limit: page, order_by: "name", dir, ...narrowed } },
      signal
    })) as unknown as Page
  const first = await read("asc")
  if (first.has_more !== true) return first.models
  const last = await read("desc")
  const rows = new Map([...first.models, ...last.models].map((row) => [row.id, row]))
  return rows.size < first.models.length + last.models.length ? [...rows.values()] : null
}

const tooMany = (kind: Kind): CliFailure =>
  new CliFailure({ code: "failed", message: `there are more ${kind} than can be listed (${2 * page - 1})` })

/** All resources of a kind; connections are read for each source if there are many. */
const everything = async (client: Client, kind: Kind, sources: ReadonlyArray<Row>, signal: AbortSignal) => {
  const rows = await whole(client, kind, {}, signal)
  if (rows !== null) return rows
  if (kind !== "connections") throw tooMany(kind)
  const all: Array<Row> = []
  for (const { id } of sources) {
    const ofSource = await whole(client, kind, { source_id: [id] }, signal)
    if (ofSource === null) throw tooMany(kind)
    all.push(...ofSource)
  }
  return all
}

export const takeInventory = async (client: Client, signal: AbortSignal): Promise<Inventory> => {
  const rows: Partial<Record<Kind, ReadonlyArray<Row>>> = {}
  for (const kind of kinds) rows[kind] = await everything(client, kind, rows.sources ?? [], signal)
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
