import { type KeyboardEvent, useId, useMemo, useState } from "react"
import { toneOf, wordsOf } from "./Status.tsx"

export interface Node {
  readonly id: string
  readonly title: string
  /** What kind of thing it is, below its title. */
  readonly kind: string
  readonly status?: string
  /** Something at it needs the reader. */
  readonly isFaulty?: boolean
}

export interface Edge {
  readonly from: string
  readonly to: string
  readonly label?: string
  /** How the node differs in another version. It is drawn differently, and its label says so. */
  readonly mark?: "added" | "removed" | "changed"
}

const width = 190
const height = 54
const columnGap = 28
const rowGap = 52
const zooms = [0.4, 0.6, 0.8, 1, 1.25, 1.5]

/** The longest way from a first node to each node, in edges. A cycle ends after as many rounds as there are nodes. */
const rowsOf = (nodes: ReadonlyArray<Node>, edges: ReadonlyArray<Edge>): ReadonlyMap<string, number> => {
  const rows = new Map(nodes.map(({ id }) => [id, 0]))
  for (const _ of nodes) {
    let isChanged = false
    for (const { from, to } of edges) {
      const least = Math.min((rows.get(from) ?? 0) + 1, nodes.length)
      if ((rows.get(to) ?? 0) >= least) continue
      rows.set(to, least)
      isChanged = true
    }
    if (!isChanged) break
  }
  return rows
}

interface Point {
  readonly x: number
  readonly y: number
}

/**
 * The position of each node: in a row below all nodes that lead to it, and within the row in the order of the nodes above. An edge over several rows
 * gets a position in each of them, so that it does not cross a node.
 */
const placesOf = (nodes: ReadonlyArray<Node>, edges: ReadonlyArray<Edge>) => {
  const rows = rowsOf(nodes, edges)
  const above = new Map<string, Array<string>>()
  const lead = (from: string, to: string) => void above.set(to, [...(above.get(to) ?? []), from])
  const levels: Array<Array<string>> = []
  const put = (id: string, row: number) => void (levels[row] ??= []).push(id)
  for (const { id } of nodes) put(id, rows.get(id) ?? 0)
  const bends = edges.map(({ from, to }, index) => {
    const between: Array<string> = []
    let last = from
    for (let row = (rows.get(from) ?? 0) + 1; row < (rows.get(to) ?? 0); row++) {
      const id = `${index} ${row}`
      put(id, row)
      lead(last, id)
      between.push(id)
      last = id
    }
    lead(last, to)
    return between
  })
  const places = new Map<string, Point>()
  const filled = levels.filter((level) => level !== undefined)
  const widest = Math.max(1, ...filled.map((level) => level.length)) * (width + columnGap) - columnGap
  for (const [row, level] of filled.entries()) {
    const wish = (id: string): number => {
      const xs = (above.get(id) ?? []).flatMap((one) => places.get(one)?.x ?? [])
      return xs.length === 0 ? 0 : xs.reduce((sum, x) => sum + x, 0) / xs.length
    }
    const begin = (widest - level.length * (width + columnGap) + columnGap) / 2
    for (const [column, id] of level.toSorted((a, b) => wish(a) - wish(b)).entries()) {
      places.set(id, { x: begin + column * (width + columnGap) + width / 2, y: row * (height + rowGap) })
    }
  }
  return { places, bends, size: { x: widest, y: filled.length * (height + rowGap) - rowGap } }
}

/** A line from the lower side of one node to the upper side of another, through the places between them. */
const lineOf = (points: ReadonlyArray<Point>): string =>
  points
    .slice(1)
    .map(({ x, y }, index) => {
      const last = points[index]!
      const middle = (last.y + y) / 2
      return `C ${last.x} ${middle}, ${x} ${middle}, ${x} ${y}`
    })
    .reduce((line, part) => `${line} ${part}`, `M ${points[0]!.x} ${points[0]!.y}`)

const cut = (text: string): string => (text.length > 24 ? `${text.slice(0, 23)}…` : text)

/**
 * A graph, laid out from above to below. It scrolls, and can be zoomed. A node is a button: Tab reaches it, Enter selects it, and the
 * arrow keys go along the edges.
 */
export const Graph = ({
  edges,
  label,
  nodes,
  onSelect,
  selected = null
}: {
  readonly label: string
  readonly nodes: ReadonlyArray<Node>
  readonly edges: ReadonlyArray<Edge>
  readonly selected?: string | null
  readonly onSelect: (id: string) => void
}) => {
  const [zoom, setZoom] = useState(1)
  const tip = useId()
  const known = useMemo(() => new Set(nodes.map(({ id }) => id)), [nodes])
  const drawn = useMemo(() => edges.filter(({ from, to }) => known.has(from) && known.has(to)), [edges, known])
  const { bends, places, size } = useMemo(() => placesOf(nodes, drawn), [nodes, drawn])
  const step = (by: number) => setZoom(zooms[zooms.indexOf(zoom) + by] ?? zoom)
  const onKey = (event: KeyboardEvent<SVGGElement>, id: string) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault()
      return onSelect(id)
    }
    const next =
      event.key === "ArrowDown"
        ? drawn.find(({ from }) => from === id)?.to
        : event.key === "ArrowUp"
          ? drawn.find(({ to }) => to === id)?.from
          : undefined
    if (next === undefined) return
    event.preventDefault()
    const all = event.currentTarget.ownerSVGElement?.querySelectorAll<SVGGElement>("[data-node]") ?? []
    for (const node of all) if (node.dataset["node"] === next) node.focus()
  }
  return (
    <div className="graph">
      <div className="tabs">
        <button type="button" aria-label="Smaller" onClick={() => step(-1)} disabled={zoom === zooms[0]}>
          −
        </button>
        <button type="button" aria-label="Larger" onClick={() => step(1)} disabled={zoom === zooms.at(-1)}>
          +
        </button>
      </div>
      <div className="canvas" role="region" aria-label={label} tabIndex={0}>
        <svg
          width={(size.x + 24) * zoom}
          height={(size.y + 24) * zoom}
          viewBox={`-12 -12 ${size.x + 24} ${size.y + 24}`}
          role="group"
          aria-label={label}
        >
          <defs>
            <marker
              id={tip}
              viewBox="0 0 8 8"
              refX="8"
              refY="4"
              markerUnits="userSpaceOnUse"
              markerWidth="12"
              markerHeight="12"
              orient="auto"
            >
              <path className="tip" d="M 0 0 L 8 4 L 0 8 z" />
            </marker>
          </defs>
          {drawn.map(({ from, label, mark, to }, index) => {
            const said = mark === undefined ? label : label === undefined ? mark : `${label} (${mark})`
            const a = places.get(from)!
            const b = places.get(to)!
            const between = bends[index]!.flatMap((id) => {
              const { x, y } = places.get(id)!
              return [
                { x, y },
                { x, y: y + height }
              ]
            })
            const points = [{ x: a.x, y: a.y + height }, ...between, { x: b.x, y: b.y }]
            const next = points[1]!
            return (
              <g key={`${from} ${label ?? ""} ${to}`} className={mark}>
                <path className="edge" d={lineOf(points)} markerEnd={`url(#${tip})`} />
                {said === undefined ? null : (
                  <text
                    className="port"
                    x={(a.x + 2 * next.x) / 3}
                    y={a.y + height + rowGap * 0.62}
                    textAnchor="middle"
                  >
                    {cut(said)}
                  </text>
                )}
              </g>
            )
          })}
          {nodes.map(({ id, isFaulty = false, kind, status, title }) => {
            const { x, y } = places.get(id)!
            const tone = isFaulty ? "bad" : toneOf(status ?? "")
            const said = [
              title,
              kind,
              ...(status === undefined ? [] : [wordsOf(status)]),
              ...(isFaulty ? ["faulty"] : [])
            ]
            return (
              <g
                key={id}
                data-node={id}
                className={`node ${tone}`}
                transform={`translate(${x - width / 2} ${y})`}
                role="button"
                tabIndex={0}
                aria-label={said.join(", ")}
                aria-pressed={id === selected}
                onClick={() => onSelect(id)}
                onKeyDown={(event) => onKey(event, id)}
              >
                <rect width={width} height={height} rx={6} />
                <text x={12} y={23}>
                  {cut(title)}
                </text>
                <text className="kind" x={12} y={42}>
                  {status === undefined ? kind : `${kind} · ${wordsOf(status)}`}
                </text>
              </g>
            )
          })}
        </svg>
      </div>
    </div>
  )
}
