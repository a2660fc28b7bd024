import { useState } from "react"
import type { Row } from "../../gateway.ts"
import { Action } from "../../parts/Action.tsx"
import { Panel } from "../../parts/Panel.tsx"
import { useMay } from "../../may.ts"
import { useSession } from "../../session.ts"
import { draftsOf, RuleBuilder, rulesOf } from "./RuleBuilder.tsx"
import { TryRules } from "./TryRules.tsx"

/** What a trial of rules may call. */
const tries = ["POST /filters/test", "POST /transformations/run", "POST /sources/{id}/deduplication-test"] as const

/** The rules of a connection: written in forms, tried on requests of its source, and saved together. */
export const ConnectionRules = ({ connection }: { readonly connection: Row<"Connection"> }) => {
  const { client } = useSession()
  const may = useMay()
  const [drafts, setDrafts] = useState(() => draftsOf(connection.rules))
  const rules = rulesOf(drafts)
  return (
    <Panel title="Rules">
      <div className="stack">
        <RuleBuilder drafts={drafts} change={setDrafts} />
        {tries.every(may) ? <TryRules rules={rules} sourceId={connection.source_id} /> : null}
        <div className="bar">
          <Action
            call="PATCH /connections/{id}"
            primary
            disabled={rules === null}
            done="Saved"
            run={() =>
              client.patch("/connections/{id}", {
                params: { path: { id: connection.id } },
                body: { rules: rules ?? [] }
              })
            }
          >
            Save the rules
          </Action>
        </div>
      </div>
    </Panel>
  )
}
