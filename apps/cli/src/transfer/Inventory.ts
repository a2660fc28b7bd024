import { type Client, TidegateError } from "@tidegate/client/source"
import { accountsByName } from "./Accounts.ts"
import { entryOf, type Kind, kinds, singular } from "./Entries.ts"
import type { Entry, Row } from "./Kind.ts"
import type { Names } from "./References.ts"

interface Known {
  readonly row: Row
  readonly entry: Entry
}

/** The gateway's resources, by name. */
export interface Inventory extends Readonly<Record<Kind, ReadonlyMap<string, Known>>> {
  /** The ids of provider accounts, by provider and name. Several accounts may have the same name. */
  readonly provider_accounts: ReadonlyMap<string, ReadonlyArray<string>>
}

/** Concurrent calls: enough to be fast, and few enough not to disturb the gateway's traffic. */
export const atOnce = 6

/** Runs all of `work`, several at a time. The first failure ends it. */
export const several = async <A>(work: ReadonlyArray<A>, run: (one: A) => Promise<void>): Promise<void> => {
  const queue = [...work]
  let hasFailed = false
  const worker = async (): Promise<void> => {
    for (let one = queue.shift(); one !== undefined && !hasFailed; one = queue.shift()) {
      try {
        await run(one)
      } catch (error) {
        hasFailed = true
        throw error
      }
    }
  }
  const ended = await Promise.allSettled(Array.from({ length: atOnce }, worker))
  const failed = ended.find(({ status }) => status === "rejected")
  if (failed !== undefined) throw (failed as PromiseRejectedResult).reason
}

/** All of a list. */
const everything = async (client: Client, list: Kind, signal: AbortSignal): Promise<ReadonlyArray<Row>> => {
  // The order by name is one that no change of a resource's settings moves, so that none is missed between two pages.
  const byName = { limit: 255, order_by: "name", dir: "asc" } as const
  const rows = client.list(`/${list}`, { params: { query: byName }, signal })
  return (await Array.fromAsync<unknown>(rows)) as Array<Row>
}

/** A list of workflows has no steps. One that was deleted in the meantime is left out. */
const wholeWorkflows = async (
  client: Client,
  listed: ReadonlyArray<Row>,
  isWanted: (name: string) => boolean,
  signal: AbortSignal
): Promise<ReadonlyArray<Row>> => {
  const whole = new Map<string, Row | null>()
  await several(
    listed.filter(({ name }) => isWanted(name)),
    async ({ id }) => {
      try {
        const row = await client.get("/workflows/{id}", { params: { path: { id } }, signal })
        whole.set(id, row as unknown as Row)
      } catch (error) {
        if (!(error instanceof TidegateError && error.status === 404)) throw error
        whole.set(id, null)
      }
    }
  )
  return listed.flatMap((row) => whole.get(row.id) ?? (whole.has(row.id) ? [] : [row]))
}

/** `isWanted`: the workflows whose steps are needed, by name. */
export const takeInventory = async (
  client: Client,
  signal: AbortSignal,
  isWanted: (workflow: string) => boolean = () => true
): Promise<Inventory> => {
  const rows = new Map<Kind, ReadonlyArray<Row>>()
  for (const kind of kinds) rows.set(kind, await everything(client, kind, signal))
  const accounts = await accountsByName(client, signal)
  rows.set("workflows", await wholeWorkflows(client, rows.get("workflows")!, isWanted, signal))

  const names: Names = new Map([
    ...kinds.flatMap((kind) => rows.get(kind)!.map(({ id, name }) => [id, { target: singular[kind], name }] as const)),
    // An account whose name is not unique stays an id: the name does not say which it is.
    ...[...accounts].flatMap(([name, ids]) =>
      ids.length === 1 ? [[ids[0]!, { target: "provider_account", name }] as const] : []
    )
  ])
  const ofKind = (kind: Kind): ReadonlyMap<string, Known> =>
    new Map(
      rows
        .get(kind)!
        .toSorted((left, right) => (left.name < right.name ? -1 : 1))
        .map((row) => [row.name, { row, entry: entryOf(kind, row, names) }])
    )
  return {
    ...(Object.fromEntries(kinds.map((kind) => [kind, ofKind(kind)])) as unknown as Record<
      Kind,
      ReadonlyMap<string, Known>
    >),
    provider_accounts: accounts
  }
}
