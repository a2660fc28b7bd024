import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { useSession } from "../session.ts"

type Kind = "sources" | "destinations" | "connections" | "transformations" | "workflows"

/** The names of a team's resources, read once for all rows that show them. */
const useNames = (kind: Kind): ReadonlyMap<string, string> | undefined => {
  const { client, team } = useSession()
  const { data } = useQuery({
    queryKey: ["names", team, kind],
    queryFn: async () => {
      const { models } = await client.get(`/${kind}`, { params: { query: { limit: 255 } } })
      return new Map(models.map(({ id, name }) => [id, name] as const))
    },
    staleTime: 30_000
  })
  return data
}

/** A resource by its name, or by its id until the name is known. */
export const Name = ({ id, kind }: { readonly kind: Kind; readonly id: string }) => (
  <bdi>{useNames(kind)?.get(id) ?? <span className="mono">{id}</span>}</bdi>
)

export const NamedLink = ({ id, kind }: { readonly kind: Kind; readonly id: string }) => (
  <Link to={`/${kind}/${id}`}>
    <Name kind={kind} id={id} />
  </Link>
)

/** The names as choices of a filter. */
export const useChoices = (kind: Kind): ReadonlyArray<readonly [string, string]> => [...(useNames(kind) ?? [])]
