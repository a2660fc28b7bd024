import { useNavigate } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { Action } from "../../parts/Action.tsx"
import { Status } from "../../parts/Status.tsx"
import { useSession } from "../../session.ts"

export type Plural = "sources" | "destinations" | "connections"

export const stateOf = ({
  disabled_at,
  paused_at
}: {
  readonly disabled_at: string | null
  readonly paused_at?: string | null
}): string => (disabled_at !== null ? "disabled" : (paused_at ?? null) !== null ? "paused" : "enabled")
/** The title of a resource's page, its status, and what can be done with it as a whole. */
export const Head = ({
  asksDelete,
  asksDisable,
  children,
  kind,
  row
}: {
  readonly kind: Plural
  readonly row: {
    readonly id: string
    readonly name: string
    readonly disabled_at: string | null
    readonly paused_at?: string | null
  }
  readonly asksDisable: string
  readonly asksDelete: string
  readonly children?: ReactNode
}) => {
  const { client } = useSession()
  const navigate = useNavigate()
  const path = { params: { path: { id: row.id } } }
  return (
    <header>
      <h1>
        <bdi>{row.name}</bdi>
      </h1>
      <Status of={stateOf(row)} />
      <div className="actions">
        {children}
        {row.disabled_at === null ? (
          <Action
            call={`PUT /${kind}/{id}/disable`}
            run={() => client.put(`/${kind}/{id}/disable`, path)}
            asks={asksDisable}
          >
            Disable
          </Action>
        ) : (
          <Action call={`PUT /${kind}/{id}/enable`} run={() => client.put(`/${kind}/{id}/enable`, path)}>
            Enable
          </Action>
        )}
        <Action
          call={`DELETE /${kind}/{id}`}
          asks={asksDelete}
          run={async () => {
            await client.delete(`/${kind}/{id}`, path)
            await navigate({ to: `/${kind}` })
          }}
        >
          Delete
        </Action>
      </div>
    </header>
  )
}
