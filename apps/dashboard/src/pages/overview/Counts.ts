import { useQuery } from "@tanstack/react-query"
import type { Client } from "@tidegate/client/source"
import { useSession } from "../../session.ts"

/** Ids in one call for counts. */
const maxCounted = 100

interface Counts<Model> {
  readonly models: ReadonlyArray<Model>
  /** There are more resources than were counted. */
  readonly isCut: boolean
}

/** The counts of a kind's resources; of the newest ones, if there are many. */
const read = async <Model>(client: Client, kind: "sources" | "destinations" | "workflows"): Promise<Counts<Model>> => {
  const { has_more, models } = await client.get(`/${kind}`, { params: { query: { limit: maxCounted } } })
  if (models.length === 0) return { models: [], isCut: false }
  const ids = models.map(({ id }) => id)
  const answer = await client.get(`/metrics/${kind}`, { params: { query: { ids } } })
  return { models: answer.models as unknown as ReadonlyArray<Model>, isCut: has_more }
}

/** The counts of 24 hours of a kind's resources. Parts of a page that ask for the same ones ask once. */
export const useCounts = <Model>(kind: "sources" | "destinations" | "workflows") => {
  const { client, team } = useSession()
  return useQuery({
    queryKey: ["worst", team, kind],
    queryFn: () => read<Model>(client, kind),
    refetchInterval: 30_000
  })
}
