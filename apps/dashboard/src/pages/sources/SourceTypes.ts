import { useQuery } from "@tanstack/react-query"
import type { Row } from "../../gateway.ts"
import { useSession } from "../../session.ts"

export type SourceType = Row<"SourceType">

/** The types of sources, as people know them. `isNeeded`: a page may need them only after a choice. */
export const useSourceTypes = (isNeeded = true) => {
  const { client } = useSession()
  return useQuery({
    queryKey: ["source-types"],
    queryFn: async (): Promise<ReadonlyArray<SourceType>> => (await client.get("/source-types")).models,
    staleTime: Infinity,
    enabled: isNeeded
  })
}

/** Returns the name by which people know a type; the type itself if it has none, or until the names are known. */
export const useTypeName = (): ((type: string) => string) => {
  const { data = [] } = useSourceTypes()
  const names = new Map(data.map(({ name, type }) => [type, name]))
  return (type) => names.get(type) ?? type
}
