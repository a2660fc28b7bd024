import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { AccountUser } from "@tidegate/model/ProviderAccount"
import * as Columns from "../journal/Columns.ts"

/** Resources that are named with an account; the counts are of all of them. */
const maxNamed = 20

/** How many resources use an account, and the first of them. */
export interface Usage {
  readonly sources: number
  readonly actions: number
  readonly workflows: number
  readonly used_by: ReadonlyArray<AccountUser>
}

export const unused: Usage = { sources: 0, actions: 0, workflows: 0, used_by: [] }

/** Which resources of the team use each of these accounts. An account that nothing uses is absent. */
export const usageOf = Effect.fnUntraced(function* (
  team_id: string,
  ids: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyMap<string, Usage>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  // A workflow may name an account in its current version, in its draft or in both, and in several steps: it is one user.
  const rows = yield* sql<Usage & { account: string }>`
    with used as (
      select distinct account, type, id, name from (
        select config -> 'provider' ->> 'provider_account_id' as account, 'source' as type, id, name from sources
        where team_id = ${team_id} and deleted_at is null and type = 'PROVIDER'
        union all
        select config ->> 'provider_account_id', 'action', id, name from actions where team_id = ${team_id} and deleted_at is null
        union all
        select a.account, 'workflow', w.id, w.name
        from workflows w cross join lateral jsonb_array_elements_text(w.accounts) as a (account)
        where w.team_id = ${team_id} and w.deleted_at is null and w.accounts is not null
        union all
        select a.account, 'workflow', w.id, w.name
        from workflow_drafts d join workflows w on w.id = d.workflow_id and w.deleted_at is null
          cross join lateral jsonb_array_elements_text(d.accounts) as a (account)
        where d.team_id = ${team_id} and d.accounts is not null
      ) named where account = any(${Columns.text(ids)})
    )
    select account, count(*) filter (where type = 'source')::int4 as sources, count(*) filter (where type = 'action')::int4 as actions,
      count(*) filter (where type = 'workflow')::int4 as workflows,
      to_json((array_agg(json_build_object('type', type, 'id', id, 'name', name) order by type, name, id))[1:${maxNamed}::int4]) as used_by
    from used group by account`
  return new Map(rows.map(({ account, ...usage }) => [account, usage]))
})
