import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { CapturedRequest } from "@tidegate/model/CapturedRequest"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import { binLife } from "@tidegate/model/PublicBin"
import { firstRequestOf } from "../control/Bins.ts"
import { captured } from "./CapturedReads.ts"
import { writeCursor } from "./Cursor.ts"
import { noWindow, startOf, type SubPageRequest } from "./Paging.ts"

export interface OpenBin {
  readonly id: string
  readonly team_id: string
  readonly expires_at: Date
}

/**
 * A page of the requests that a bin has received, newest first. Bodies larger than a list shows are left out, so that a page is
 * bounded in bytes.
 */
export const binRequests = Effect.fnUntraced(function* (
  { expires_at, id, team_id }: OpenBin,
  page: SubPageRequest
): Effect.fn.Return<
  { readonly requests: ReadonlyArray<CapturedRequest>; readonly next_cursor: string | null },
  GatewayError | SqlError.SqlError,
  SqlClient.SqlClient
> {
  const sql = yield* SqlClient.SqlClient
  const before = yield* Effect.fromResult(startOf(page))
  const from = firstRequestOf(expires_at.getTime() - binLife.seconds * 1_000)
  const rows = yield* sql<{ id: string }>`
    select id from requests
    where source_id = ${id} and team_id = ${team_id} and id >= ${from} and id < ${before === "" ? `${prefixes.request}~` : before}
    order by id desc limit ${page.limit + 1}`
  const ids = rows.slice(0, page.limit).map((row) => row.id)
  const last = ids.at(-1)
  return {
    requests: (yield* captured(team_id, ids)).toReversed(),
    next_cursor:
      rows.length > page.limit && last !== undefined
        ? writeCursor(page.key, { id: last, seen: 0, window: noWindow, back: false })
        : null
  }
})
