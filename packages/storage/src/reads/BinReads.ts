import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { CapturedRequest } from "@tidegate/model/CapturedRequest"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import { binLife } from "@tidegate/model/PublicBin"
import { firstRequestOf } from "../control/Bins.ts"
import { captured } from "./CapturedReads.ts"
import { cursorAfter, cutToLimit, type PageRequest, positionOf } from "./Paging.ts"

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
  page: PageRequest
): Effect.fn.Return<
  { readonly requests: ReadonlyArray<CapturedRequest>; readonly next_cursor: string | null },
  GatewayError | SqlError.SqlError,
  SqlClient.SqlClient
> {
  const sql = yield* SqlClient.SqlClient
  const position = yield* Effect.fromResult(positionOf(page))
  const from = firstRequestOf(expires_at.getTime() - binLife.seconds * 1_000)
  const rows = yield* sql<{ id: string }>`
    select id from requests
    where source_id = ${id} and team_id = ${team_id} and id >= ${from} and id < ${position?.id ?? `${prefixes.request}~`}
    order by id desc limit ${page.limit + 1}`
  const { last, page: shown } = cutToLimit(rows, page.limit)
  return {
    requests: (yield* captured(
      team_id,
      shown.map((row) => row.id)
    )).toReversed(),
    next_cursor: cursorAfter(page.key, last)
  }
})
