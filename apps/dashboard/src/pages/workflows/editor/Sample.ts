import { useQuery } from "@tanstack/react-query"
import { useSession } from "../../../session.ts"

/** The request that steps are tried with: the given one, or the last one of the workflow's source. An empty id: there is none. */
export const useSample = (sourceId: string | null, requestId: string) => {
  const { client, team } = useSession()
  const latest = useQuery({
    queryKey: ["latest request", team, sourceId],
    queryFn: async () => {
      const { models } = await client.get("/requests", {
        params: { query: { source_id: [sourceId!], from: "now-7d", limit: 1 } }
      })
      return models[0]?.id ?? ""
    },
    enabled: sourceId !== null,
    staleTime: Infinity
  })
  const latestId = latest.data ?? ""
  const sampleId = requestId === "" ? latestId : requestId
  const sample = useQuery({
    queryKey: ["sample", team, sampleId],
    queryFn: () => client.get("/requests/{id}", { params: { path: { id: sampleId } } }),
    enabled: sampleId !== "",
    retry: false
  })
  return { data: sample.data?.data, isLoading: latest.isLoading, latestId, sampleId }
}
