import { useInfiniteQuery } from "@tanstack/react-query"
import { Link, useNavigate } from "@tanstack/react-router"
import { useVirtualizer } from "@tanstack/react-virtual"
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react"
import { Empty, Failure, Loading } from "./States.tsx"

/** What every list of the API answers. */
export interface Page<Model> {
  readonly models: ReadonlyArray<Model>
  readonly next_cursor: string | null
  readonly has_more: boolean
}

export interface Column<Model> {
  readonly title: string
  /** A length of CSS grid: `120px`, `1fr`. */
  readonly width: string
  readonly cell: (row: Model) => ReactNode
  /** Shown only to readers who want it. */
  readonly isExtra?: boolean
}

/** What a column that grows needs at least, and the gap between columns (px). */
const leastWidth = 130
const gap = 12

/** Narrower than this, a list scrolls: no column is squeezed until it is empty. */
const leastOf = (widths: ReadonlyArray<string>): number =>
  widths.reduce((sum, width) => sum + gap + (width.endsWith("px") ? Number.parseInt(width) : leastWidth), gap)

const rowHeight = 36
/** Rows that are read before the reader has scrolled to them. */
const ahead = 40
/** A list that is live is read again this often (ms), and not while the page is in the background. */
export const liveMs = 2_000

/**
 * Rows of the API, read page by page as the reader scrolls; only those that can be seen are drawn. Each row is a link, so that it
 * opens in a new tab as well. `j` and `k` move, Enter opens.
 */
export const List = <Model extends { readonly id: string }>({
  columns,
  empty,
  isLive = false,
  keys,
  label,
  read,
  to
}: {
  readonly label: string
  /** Everything that the rows depend on. */
  readonly keys: ReadonlyArray<unknown>
  readonly read: (cursor: string | null) => Promise<Page<Model>>
  readonly columns: ReadonlyArray<Column<Model>>
  readonly to: (row: Model) => string
  readonly isLive?: boolean
  readonly empty: ReactNode
}) => {
  const frame = useRef<HTMLDivElement>(null)
  const navigate = useNavigate()
  const [selected, setSelected] = useState(-1)
  const query = useInfiniteQuery({
    queryKey: ["list", ...keys],
    queryFn: ({ pageParam }) => read(pageParam),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => (last.has_more ? last.next_cursor : null),
    refetchInterval: isLive ? liveMs : false
  })
  const rows = useMemo(() => query.data?.pages.flatMap(({ models }) => models) ?? [], [query.data])
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    estimateSize: () => rowHeight,
    overscan: 12
  })
  const shown = virtual.getVirtualItems()
  const lastShown = shown.at(-1)?.index ?? 0
  const { fetchNextPage, hasNextPage, isFetching } = query
  useEffect(() => {
    if (hasNextPage && !isFetching && lastShown >= rows.length - ahead) void fetchNextPage()
  }, [fetchNextPage, hasNextPage, isFetching, lastShown, rows.length])

  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (isTyping(event) || event.metaKey || event.ctrlKey || event.altKey) return
      if (event.key === "j" || event.key === "k") {
        event.preventDefault()
        const next = Math.min(rows.length - 1, Math.max(0, selected + (event.key === "j" ? 1 : -1)))
        setSelected(next)
        virtual.scrollToIndex(next)
      }
      const row = rows[selected]
      if (event.key === "Enter" && row !== undefined && document.activeElement === document.body) {
        void navigate({ to: to(row) })
      }
    }
    document.addEventListener("keydown", onKey)
    return () => document.removeEventListener("keydown", onKey)
  }, [navigate, rows, selected, to, virtual])

  if (query.isPending) return <Loading />
  if (query.isError && rows.length === 0) return <Failure error={query.error} retry={query.refetch} />
  if (rows.length === 0) return <Empty>{empty}</Empty>
  const given = columns.map(({ width }) => width)
  const widths = {
    "--columns": given.map((width) => (width.endsWith("px") ? width : `minmax(${leastWidth}px, ${width})`)).join(" "),
    "--least": `${leastOf(given)}px`
  } as Record<string, string>
  return (
    <div className="list" ref={frame} style={widths} role="region" aria-label={label} tabIndex={0}>
      <div className="head">
        {columns.map(({ title }) => (
          <span key={title}>{title}</span>
        ))}
      </div>
      <div className="rows" style={{ height: virtual.getTotalSize() }}>
        {shown.map(({ index, start }) => {
          const row = rows[index]!
          return (
            <Link
              key={row.id}
              className="row"
              to={to(row)}
              data-selected={index === selected}
              style={{ transform: `translateY(${start}px)` }}
            >
              {columns.map(({ cell, title }) => (
                <span key={title}>{cell(row)}</span>
              ))}
            </Link>
          )
        })}
      </div>
    </div>
  )
}

/** Whether a key, or what is pasted, is meant for a field; an editor's field is inside its shadow root. */
export const isTyping = (event: Event): boolean => {
  const [target] = event.composedPath()
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  )
}
