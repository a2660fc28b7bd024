import { useQueries, useQueryClient } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { createContext, type ReactNode, use, useCallback, useEffect, useMemo, useState } from "react"
import type { Client } from "@tidegate/client/source"
import { useSession } from "../session.ts"

export type Kind = "sources" | "destinations" | "connections" | "transformations" | "workflows"
type ById = ReadonlyMap<string, string>

/** Names that are older than this (ms) are read again when a part that shows them appears. */
const staleMs = 30_000

/** The same where the part shows a name that is known. In a live list such parts appear all the time, and names seldom change. */
const knownStaleMs = 300_000

const namesOf = (client: Client, team: string, kind: Kind) => ({
  queryKey: ["names", team, kind],
  queryFn: async (): Promise<ById> => {
    const { models } = await client.get(`/${kind}`, { params: { query: { limit: 255 } } })
    return new Map(models.map(({ id, name }) => [id, name]))
  },
  staleTime: staleMs
})

const Known = createContext<{
  readonly of: (kind: Kind) => ById | undefined
  /** A part that shows names of this kind has appeared. `id`: it shows only this one. */
  readonly want: (kind: Kind, id?: string) => void
} | null>(null)

/** The same array as long as all names are the same. */
const dataOf = (results: ReadonlyArray<{ readonly data: ById | undefined }>) => results.map(({ data }) => data)

/**
 * The names of a team's resources for all parts of the page. Each kind is looked up here once: a look-up of its own in each cell of a
 * list would cost a good part of a frame when the reader scrolls.
 */
export const Names = ({ children }: { readonly children: ReactNode }) => {
  const { client, team } = useSession()
  const cache = useQueryClient()
  const [kinds, setKinds] = useState<ReadonlyArray<Kind>>([])
  const all = useQueries({ queries: kinds.map((kind) => namesOf(client, team, kind)), combine: dataOf })
  const want = useCallback(
    (kind: Kind, id?: string) => {
      setKinds((now) => (now.includes(kind) ? now : [...now, kind]))
      const names = namesOf(client, team, kind)
      const { dataUpdatedAt = 0, errorUpdatedAt = 0 } = cache.getQueryState(names.queryKey) ?? {}
      const isKnown = id !== undefined && cache.getQueryData<ById>(names.queryKey)?.has(id) === true
      // A caller who may not read them does not ask again for each row.
      if (Date.now() - Math.max(dataUpdatedAt, errorUpdatedAt) < (isKnown ? knownStaleMs : staleMs)) return
      void cache.prefetchQuery(names)
    },
    [cache, client, team]
  )
  const known = useMemo(() => ({ of: (kind: Kind) => all[kinds.indexOf(kind)], want }), [all, kinds, want])
  return <Known value={known}>{children}</Known>
}

const useKnown = () => {
  const known = use(Known)
  if (known === null) throw new Error("names are only shown inside of Names")
  return known
}

const useNames = (kind: Kind, id?: string): ById | undefined => {
  const { of, want } = useKnown()
  useEffect(() => want(kind, id), [id, kind, want])
  return of(kind)
}

/** A resource by its name, or by its id until the name is known. */
export const Name = ({ id, kind }: { readonly kind: Kind; readonly id: string }) => (
  <bdi>{useNames(kind, id)?.get(id) ?? <span className="mono">{id}</span>}</bdi>
)

export const NamedLink = ({ id, kind }: { readonly kind: Kind; readonly id: string }) => (
  <Link to={`/${kind}/${id}`}>
    <Name kind={kind} id={id} />
  </Link>
)

/** The names of several kinds of resources, for a part that offers them; undefined: they are not read yet. */
export const useNamesOf = (kinds: ReadonlyArray<Kind>): ((kind: Kind) => ById | undefined) => {
  const { of, want } = useKnown()
  const wanted = kinds.join(" ")
  useEffect(() => {
    for (const kind of wanted.split(" ")) if (kind !== "") want(kind as Kind)
  }, [wanted, want])
  return of
}

/** The names as choices of a field. */
export const useChoices = (kind: Kind): ReadonlyArray<readonly [string, string]> => [...(useNames(kind) ?? [])]
