/** Where the map draws sources, connections and destinations: in three columns, with as few crossings as their order gives. */

export interface Link {
  readonly id: string
  readonly source_id: string
  readonly destination_id: string
}

/** The upper left corner of each node, by its id (px). */
export interface Layout {
  readonly places: ReadonlyMap<string, { readonly x: number; readonly y: number }>
  readonly width: number
  readonly height: number
}

export const nodeWidth = 240
export const nodeHeight = 56
const columnGap = 110
const rowGap = 14
const step = nodeHeight + rowGap

const mean = (numbers: ReadonlyArray<number>): number => numbers.reduce((sum, one) => sum + one, 0) / numbers.length

/**
 * Puts nodes at their preferred positions, in that order, and moves them down if they would overlap. Nodes without a preferred position come last.
 */
const spread = (wishes: ReadonlyArray<readonly [id: string, wish: number | null]>): ReadonlyMap<string, number> => {
  let free = 0
  const ordered = wishes.toSorted(([, a], [, b]) => (a ?? Infinity) - (b ?? Infinity) || 0)
  return new Map(
    ordered.map(([id, wish]) => {
      const y = wish === null ? free : Math.max(free, wish)
      free = y + step
      return [id, y] as const
    })
  )
}

export const layoutOf = (
  sources: ReadonlyArray<string>,
  links: ReadonlyArray<Link>,
  destinations: ReadonlyArray<string>
): Layout => {
  const bySource = new Map(sources.map((id, index) => [id, index]))
  const byDestination = new Map(destinations.map((id, index) => [id, index]))
  const ordered = links.toSorted(
    (a, b) =>
      (bySource.get(a.source_id) ?? 0) - (bySource.get(b.source_id) ?? 0) ||
      (byDestination.get(a.destination_id) ?? 0) - (byDestination.get(b.destination_id) ?? 0)
  )
  const middle = new Map(ordered.map(({ id }, index) => [id, index * step]))
  const wishOf = (key: "source_id" | "destination_id", id: string): number | null => {
    const own = links.filter((link) => link[key] === id).map((link) => middle.get(link.id)!)
    return own.length === 0 ? null : mean(own)
  }
  const left = spread(sources.map((id) => [id, wishOf("source_id", id)] as const))
  const right = spread(destinations.map((id) => [id, wishOf("destination_id", id)] as const))
  const columns = [left, middle, right]
  const places = new Map(
    columns.flatMap((column, index) =>
      [...column].map(([id, y]) => [id, { x: index * (nodeWidth + columnGap), y }] as const)
    )
  )
  const lowest = [...places.values()].reduce((most, { y }) => Math.max(most, y), 0)
  return { places, width: 3 * nodeWidth + 2 * columnGap, height: lowest + nodeHeight }
}
