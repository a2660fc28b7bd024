import { useQuery } from "@tanstack/react-query"
import type { Row } from "../gateway.ts"
import { decoded, downloadName } from "../parts/Body.tsx"
import { Copy } from "../parts/Copy.tsx"
import { useSession } from "../session.ts"
import { curlOf } from "./curl.ts"
import { isPosted } from "./posted.ts"

/** Copies a request as a command that sends it again. Nothing if its source takes no requests by HTTP, or is not there any more. */
export const CopyCurl = ({
  bytes,
  data,
  id,
  sourceId
}: {
  readonly data: Row<"RequestData">
  readonly bytes: Uint8Array
  /** The request's. */
  readonly id: string
  readonly sourceId: string
}) => {
  const { client, team } = useSession()
  const { data: source } = useQuery({
    queryKey: ["source", team, sourceId],
    queryFn: () => client.get("/sources/{id}", { params: { path: { id: sourceId } } }),
    retry: false
  })
  if (source === undefined || !isPosted(source)) return null
  return <Copy text={curlOf(data, source.url, decoded(bytes), downloadName(id))} label="Copy as curl" />
}
