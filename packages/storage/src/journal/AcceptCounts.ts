import type { RequestRecord } from "./RequestRecord.ts"

/** The number of records under a key and measure. */
export interface Count {
  readonly pair: number
  readonly key: string
  readonly source: string | null
  readonly destination: string | null
  readonly measure: string
  readonly minute: number
  readonly team: string
  n: bigint
}

/** All counts of a batch whose requests have one (source, version) pair. */
export interface Tally {
  readonly pair: number
  readonly team: string
  readonly counts: ReadonlyArray<Count>
}

/** Counts of a batch by (pair, key, measure, minute). */
export class Counts {
  readonly #byKey = new Map<string, Count>()

  /** A pair always has the same source and team, and a connection the same destination. */
  add(
    { item, pair }: { readonly item: RequestRecord; readonly pair: number },
    key: string,
    source: string | null,
    destination: string | null,
    measure: string
  ): void {
    const minute = item.ingestedAt - (item.ingestedAt % 60_000)
    const name = `${pair}/${measure}/${key}/${minute}`
    const count = this.#byKey.get(name)
    if (count !== undefined) count.n++
    else this.#byKey.set(name, { pair, key, source, destination, measure, minute, team: item.teamId, n: 1n })
  }

  get all(): Iterable<Count> {
    return this.#byKey.values()
  }
}
