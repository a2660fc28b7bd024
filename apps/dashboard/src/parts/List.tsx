import { useNavigate } from "@tanstack/react-router"
import { memo, type ReactNode, useCallback, useEffect, useRef, useState } from "react"
import { folder } from "../gateway.ts"
import { useFurther } from "./Further.ts"
import { type Arrived, type Page, type PageQuery, type Searched, usePages } from "./Pages.ts"
import { Empty, Failure, Loading } from "./States.tsx"
import { Time } from "./Time.tsx"
import { rowHeight, useVirtualRows } from "./VirtualRows.ts"

export interface Column<Model> {
  readonly title: string
  /** A length of CSS grid: `120px`, `1fr`. */
  readonly width: string
  readonly cell: (row: Model) => ReactNode
  /** Shown only to readers who want it. */
  readonly isExtra?: boolean
}

/** The minimum width of a column that grows, and the gap between columns (px). */
const minWidth = 130
const gap = 12

/** Narrower than this, a list scrolls: no column is squeezed until it is empty. */
const minWidthOf = (widths: ReadonlyArray<string>): number =>
  widths.reduce((sum, width) => sum + gap + (width.endsWith("px") ? Number.parseInt(width) : minWidth), gap)

/** The selected row: it stays selected wherever rows that arrive move it. */
interface Selected {
  /** Null until the row at the index is read. */
  readonly id: string | null
  /** The last position of the row. The keys continue from there if the row is no longer in the loaded pages. */
  readonly index: number
}

const nothingSelected: Selected = { id: null, index: -1 }

/** Buttons at the end of each row. A row is a link, so they are above it and not in it. */
interface RowActions<Model> {
  /** How much of the row they need. */
  readonly width: `${number}px`
  /** An element of the class `row-actions`. */
  readonly of: (row: Model) => ReactNode
}

interface Drawn<Model> {
  readonly actions: RowActions<Model> | undefined
  readonly columns: ReadonlyArray<Column<Model>>
  readonly isSelected: boolean
  readonly open: (to: string) => void
  readonly row: Model
  readonly start: number
  readonly to: string
}

/**
 * A row is drawn again only if it has changed: the others stay as they are while the reader scrolls. It is a plain link, because many
 * are made while the reader scrolls, and each link of the router follows all changes of the page's address.
 */
const DrawnRow = memo(<Model,>({ actions, columns, isSelected, open, row, start, to }: Drawn<Model>) => {
  const place = { transform: `translateY(${start}px)` }
  const link = (
    <a
      className="row"
      href={folder.pathname.slice(0, -1) + to}
      data-selected={isSelected}
      style={actions === undefined ? place : undefined}
      onClick={(event) => {
        // Any other click is the browser's: a new tab or window, or a download.
        if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
        event.preventDefault()
        open(to)
      }}
    >
      {columns.map(({ cell, title }) => (
        <span key={title}>{cell(row)}</span>
      ))}
    </a>
  )
  if (actions === undefined) return link
  return (
    <div className="line" style={place}>
      {link}
      {actions.of(row)}
    </div>
  )
}) as <Model>(props: Drawn<Model>) => ReactNode

/** What a live list does not show. */
const LiveNote = ({
  arrived,
  count,
  waitMs
}: {
  readonly arrived: Arrived | null
  readonly count: number
  readonly waitMs: number
}) => (
  <p className="muted">
    {arrived === null
      ? `Live: the rows in sight are read again every ${Math.round(waitMs / 1_000)} seconds.`
      : `Live: ${arrived.total.toLocaleString()} have arrived in ${(arrived.ms / 1_000).toFixed(1)} s, counted every thirty seconds. The newest ${count} are shown.`}
  </p>
)

/** How far back a search has read. Older rows may contain the text as well, and are read when the reader asks for it. */
const SearchedNote = ({
  further: { error, isRunning, start, stop },
  of: { count, cursor, since }
}: {
  readonly of: Searched
  readonly further: ReturnType<typeof useFurther>
}) => (
  <>
    <p className="muted" role="status" aria-label="How far was searched">
      {isRunning ? "Searching" : "Searched"}: {cursor !== null ? "the newest " : "all "}
      {count.toLocaleString()} of this time
      {since === null ? null : (
        <>
          , back to <Time at={since} precise />
        </>
      )}
      .{cursor !== null && !isRunning ? " Older ones were not read." : null}
    </p>
    {isRunning ? (
      <button type="button" onClick={stop}>
        Stop
      </button>
    ) : cursor !== null && error === null ? (
      <button type="button" onClick={() => void start()}>
        Search further back
      </button>
    ) : null}
    {error === null ? null : <Failure error={error} retry={start} />}
  </>
)

interface Settings<Model> {
  readonly label: string
  /** Everything that the rows depend on. */
  readonly keys: ReadonlyArray<unknown>
  readonly read: (page: PageQuery) => Promise<Page<Model>>
  /** For a search, which ends before all rows were read: goes on from its cursor. */
  readonly readFurther?: ((cursor: string) => Promise<Page<Model>>) | undefined
  readonly columns: ReadonlyArray<Column<Model>>
  readonly to: (row: Model) => string
  readonly actions?: RowActions<Model> | undefined
  readonly isLive?: boolean
  /** How many rows there are since this one: shown if more arrive than a live list shows. */
  readonly countSince?: (row: Model) => Promise<number>
  readonly empty: ReactNode
}

/**
 * Rows of the API, read page by page as the reader scrolls; only those that can be seen are drawn. Each row is a link, so that it
 * opens in a new tab as well. `j` and `k` move, Enter opens.
 */
export const List = <Model extends { readonly id: string }>(settings: Settings<Model>) => (
  // Other rows are another list, which begins at its top.
  <LoadedList key={JSON.stringify(settings.keys)} {...settings} />
)

const LoadedList = <Model extends { readonly id: string }>({
  actions,
  columns,
  countSince,
  empty,
  isLive = false,
  keys,
  label,
  read,
  readFurther,
  to
}: Settings<Model>) => {
  const { attach, frame, scrollTo, shown } = useVirtualRows()
  const navigate = useNavigate()
  const open = useCallback((to: string) => void navigate({ to }), [navigate])
  const [selected, setSelected] = useState(nothingSelected)
  const pages = usePages({ keys, read, isLive, countSince }, shown)
  const further = useFurther(pages.newestKey, readFurther)
  const { count, indexOf, rowAt } = pages
  /** The rows that were drawn last: they stay until the page that they are on now is read. */
  const before = useRef<ReadonlyMap<number, Model>>(new Map())
  const drawn = Math.max(0, Math.min(shown.last + 1, count) - shown.first)
  const rows = Array.from({ length: drawn }, (_, n) => {
    const index = shown.first + n
    return { index, start: index * rowHeight, row: rowAt(index) ?? before.current.get(index) }
  })
  useEffect(() => {
    before.current = new Map(rows.flatMap(({ index, row }) => (row === undefined ? [] : [[index, row] as const])))
  })

  useEffect(() => {
    const id = selected.id ?? rowAt(selected.index)?.id ?? null
    const index = (id === null ? null : indexOf(id)) ?? selected.index
    if (id !== selected.id || index !== selected.index) setSelected({ id, index })
  })

  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!isPlainKey(event)) return
      if (event.key === "j" || event.key === "k") {
        event.preventDefault()
        const next = Math.min(count - 1, Math.max(0, selected.index + (event.key === "j" ? 1 : -1)))
        setSelected({ id: rowAt(next)?.id ?? null, index: next })
        scrollTo(next)
      }
      const row = rowAt(selected.index)
      if (event.key === "Enter" && row !== undefined && row.id === selected.id) {
        // If a link or a button has the focus, the key acts on it. The list itself can have the focus, too.
        const { activeElement, body } = document
        if (activeElement === body || activeElement === frame.current) open(to(row))
      }
    }
    document.addEventListener("keydown", onKey)
    return () => document.removeEventListener("keydown", onKey)
  }, [count, frame, open, rowAt, scrollTo, selected, to])

  if (pages.isPending) return <Loading />
  const searched = pages.searched === null ? null : <SearchedNote of={pages.searched} further={further} />
  if (count === 0) {
    return pages.error === null ? (
      <>
        <Empty>{empty}</Empty>
        {searched}
      </>
    ) : (
      <Failure error={pages.error} retry={pages.retry} />
    )
  }
  const given = [...columns.map(({ width }) => width), ...(actions === undefined ? [] : [actions.width])]
  const widths = {
    "--columns": given.map((width) => (width.endsWith("px") ? width : `minmax(${minWidth}px, ${width})`)).join(" "),
    "--least": `${minWidthOf(given)}px`
  } as Record<string, string>
  return (
    <>
      <div className="list" ref={attach} style={widths} role="region" aria-label={label} tabIndex={0}>
        <div className="head">
          {columns.map(({ title }) => (
            <span key={title}>{title}</span>
          ))}
        </div>
        <div className="rows" style={{ height: count * rowHeight }}>
          {rows.map(({ index, row, start }) =>
            row === undefined ? (
              <div key={index} className="row muted" style={{ transform: `translateY(${start}px)` }}>
                …
              </div>
            ) : (
              <DrawnRow
                key={row.id}
                actions={actions}
                columns={columns}
                isSelected={row.id === selected.id}
                open={open}
                row={row}
                start={start}
                to={to(row)}
              />
            )
          )}
        </div>
      </div>
      {searched}
      {isLive ? <LiveNote arrived={pages.arrived} count={pages.newest} waitMs={pages.waitMs} /> : null}
      {pages.error === null ? null : <Failure error={pages.error} retry={pages.retry} />}
    </>
  )
}

/** Whether a key, or what is pasted, is meant for a field; an editor's field is inside its shadow root. */
export const isTyping = (event: Event): boolean => {
  const [target] = event.composedPath()
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  )
}

/** Whether a key is meant for the page: not for a field, and not for the browser. */
export const isPlainKey = (event: KeyboardEvent): boolean =>
  !(isTyping(event) || event.metaKey || event.ctrlKey || event.altKey)
