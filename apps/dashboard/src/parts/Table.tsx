import { useInfiniteQuery, useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { useSession } from "../session.ts"
import { liveMs, type Page, pageAt, type PageQuery } from "./Pages.ts"
import { Failure, Loading } from "./States.tsx"

/** A panel with its own read. Other panels do not wait for this read, and do not fail with it. */
export const Read = <Data,>({
  children,
  name,
  read
}: {
  /** What is read, once in the dashboard. */
  readonly name: string
  readonly read: () => Promise<Data>
  readonly children: (data: Data) => ReactNode
}) => {
  const { team } = useSession()
  const query = useQuery({ queryKey: ["read", team, name], queryFn: read })
  if (query.isPending) return <Loading />
  if (query.isError) return <Failure error={query.error} retry={query.refetch} />
  return children(query.data)
}

export const Rows = ({
  children,
  columns,
  label
}: {
  readonly label: string
  readonly columns: ReadonlyArray<string>
  readonly children: ReactNode
}) => (
  <div className="wide" role="region" aria-label={`${label}, scrollable`} tabIndex={0}>
    <table aria-label={label}>
      <thead>
        <tr>
          {columns.map((title) => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  </div>
)

/** Rows of the API with buttons in them, page by page: the reader asks for the next one. */
export const PagedRows = <Model extends { readonly id: string }>({
  columns,
  empty,
  isLive = false,
  keys,
  label,
  limit,
  read,
  row
}: {
  readonly label: string
  readonly columns: ReadonlyArray<string>
  /** Everything that the rows depend on. */
  readonly keys: ReadonlyArray<unknown>
  /** Rows of a page. Default: 100. */
  readonly limit?: number | undefined
  readonly read: (page: PageQuery) => Promise<Page<Model>>
  /** The cells of a row. */
  readonly row: (model: Model) => ReadonlyArray<ReactNode>
  readonly isLive?: boolean
  readonly empty: ReactNode
}) => {
  const query = useInfiniteQuery({
    queryKey: ["rows", ...keys],
    queryFn: ({ pageParam }) => read(pageAt(pageParam, limit)),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => (last.has_more ? last.next_cursor : null),
    refetchInterval: isLive ? liveMs : false
  })
  if (query.isPending) return <Loading />
  if (query.data === undefined) return <Failure error={query.error} retry={query.refetch} />
  const models = query.data.pages.flatMap((page) => page.models)
  if (models.length === 0) return <div className="empty">{empty}</div>
  return (
    <>
      <Rows label={label} columns={columns}>
        {models.map((model) => (
          <tr key={model.id}>
            {row(model).map((cell, index) => (
              <td key={columns[index]}>{cell}</td>
            ))}
          </tr>
        ))}
      </Rows>
      {query.isError ? <Failure error={query.error} retry={query.refetch} /> : null}
      {query.hasNextPage ? (
        <button type="button" disabled={query.isFetching} onClick={() => void query.fetchNextPage()}>
          Show more
        </button>
      ) : null}
    </>
  )
}
