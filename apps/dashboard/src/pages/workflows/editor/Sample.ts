import { useQuery } from "@tanstack/react-query"
import { trigger } from "../../../parts/StepGraph.ts"
import { useSession } from "../../../session.ts"
import { pathsIn } from "./Paths.ts"

/** The request with which a workflow is tried, and the paths in it: the written one, or else the last one of its source. */
export const useSample = (sourceId: string | null, written: string) => {
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
  const sampleId = written === "" ? latestId : written
  const sample = useQuery({
    queryKey: ["sample", team, sampleId],
    queryFn: () => client.get("/requests/{id}", { params: { path: { id: sampleId } } }),
    enabled: sampleId !== "",
    retry: false
  })
  const data = sample.data?.data
  return {
    isLoading: latest.isLoading,
    latestId,
    /** Empty: there is none. */
    sampleId,
    paths: pathsIn({ body: data?.body, headers: data?.headers, method: data?.method, path: data?.path }, trigger)
  }
}
