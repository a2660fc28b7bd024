import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { useEffect, useState } from "react"
import { messageOf } from "../../../gateway.ts"
import { useSession } from "../../../session.ts"
import { type Definition, type Remark, warningsOf } from "./Definition.ts"

/** How long nothing must have changed before a definition is checked (ms). */
const quietMs = 500

/** What the gateway says about a definition that is not saved yet. */
export interface Check {
  /** What a save would be refused for. */
  readonly issues: ReadonlyArray<Remark>
  readonly warnings: ReadonlyArray<Remark>
  /** Why it could not be checked. */
  readonly failure: string | null
  /** Whether all of this is of the definition as it is now. */
  readonly isCurrent: boolean
}

/** Checks a definition as a save would, each time that the reader has changed it and pauses. Nothing is stored. */
export const useCheck = (workflowId: string, graph: Definition): Check => {
  const { client, team } = useSession()
  const [quiet, setQuiet] = useState(graph)
  useEffect(() => {
    const timer = setTimeout(() => setQuiet(graph), quietMs)
    return () => clearTimeout(timer)
  }, [graph])
  const { data, error, isPlaceholderData } = useQuery({
    queryKey: ["workflow check", team, workflowId, quiet],
    queryFn: async () => {
      const { steps, edges } = quiet
      const body = { steps: [...steps], edges: [...edges], workflow_id: workflowId }
      const { issues, warnings } = await client.post("/workflows/validate", { body })
      return {
        issues: issues.map(({ message, step_id }): Remark => ({ stepId: step_id, message })),
        warnings: warningsOf(steps, warnings)
      }
    },
    placeholderData: keepPreviousData,
    staleTime: Infinity,
    gcTime: 0
  })
  return {
    issues: data?.issues ?? [],
    warnings: data?.warnings ?? [],
    failure: error === null ? null : messageOf(error),
    isCurrent: data !== undefined && !isPlaceholderData && quiet === graph
  }
}
