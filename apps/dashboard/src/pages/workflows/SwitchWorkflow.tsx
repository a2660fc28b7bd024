import type { Row } from "../../gateway.ts"
import { Action } from "../../parts/Action.tsx"
import { useSession } from "../../session.ts"

/** Pauses an active workflow, and activates any other one. */
export const SwitchWorkflow = ({
  isInRow = false,
  of: { id, status, version }
}: {
  readonly of: Row<"Workflow">
  readonly isInRow?: boolean
}) => {
  const { client } = useSession()
  const isActive = status === "active"
  return (
    <Action
      call="PATCH /workflows/{id}"
      isInRow={isInRow}
      run={() =>
        client.patch("/workflows/{id}", {
          params: { path: { id } },
          body: { version, status: isActive ? "paused" : "active" }
        })
      }
    >
      {isActive ? "Pause" : "Activate"}
    </Action>
  )
}
