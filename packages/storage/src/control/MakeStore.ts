import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { type AnyResource, type RecordOf, type Switch, switches } from "@tidegate/resources/Resource"
import { TeamLimits } from "@tidegate/resources/TeamLimits"
import { listRows, resourcePage } from "../reads/ResourceLists.ts"
import { Secrets } from "../secrets/Secrets.ts"
import { query, transaction } from "../Transaction.ts"
import { type Committed, storeChanges } from "./StoreChanges.ts"
import type { Command, Failure, Special, Store, StoredRow, Values } from "./Store.ts"
import { storedFields } from "./StoredFields.ts"
import { now, storedRows } from "./StoredRows.ts"

/** The store of a resource. `special`: what is special about it. */
export const makeStore = Effect.fnUntraced(function* <Row extends StoredRow, R extends AnyResource>(
  resource: R,
  special: Special<Row, R>
): Effect.fn.Return<Store<R>, never, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const limit = (yield* TeamLimits)[resource.plural]!
  const { fieldsOf, valuesOf } = storedFields<Row, R>(yield* Secrets, resource, special.fields)
  const { findByName, present, read } = storedRows<Row>(sql, resource)
  const { advance, create } = storeChanges<Row, R>(sql, resource, special, limit)

  /** Commits, runs the follow-up work, and only then reads the answer, so that nothing is read while rows are locked. */
  const carryOut = Effect.fnUntraced(function* (change: Effect.Effect<Committed<Row>, GatewayError>, command: Command) {
    const committed = yield* change
    if (command.afterCommit !== undefined) yield* command.afterCommit(committed.concerned)
    return committed
  })
  const carryOutInOne = (change: Effect.Effect<Committed<Row>, Failure>, command: Command) =>
    carryOut(transaction(sql)(change), command)

  const record = (row: Row, counts = true): Effect.Effect<RecordOf<R>, SqlError.SqlError> =>
    Effect.map(special.show([row], { counts }), ([shown]) => shown as RecordOf<R>)
  const answer = ({ isNew = false, row }: Committed<Row>) => query(record(row, !isNew))

  return {
    get: (team_id, id) =>
      query(Effect.flatMap(Effect.flatMap(read(team_id, id, "look"), present), (row) => record(row))),
    findByName: (team_id, name, of) => query(findByName(team_id, name, of)),
    records: (rows, options) => special.show(rows as ReadonlyArray<Row>, options),
    list: (team_id, asked) =>
      listRows<Row>(sql, resource, team_id, asked, special.narrow?.(team_id, asked) ?? []).pipe(
        Effect.flatMap((found) =>
          Effect.map(special.show(found.rows, { counts: asked.counts, listed: true }), (models) =>
            resourcePage(asked, found, models)
          )
        ),
        query
      ),
    create: (team_id, id, fields, command = {}) => {
      const owner = { team_id, id }
      const created = Effect.gen(function* () {
        const at = yield* now
        return yield* create(owner, yield* valuesOf(owner, fields, null, at), at, command)
      })
      return Effect.flatMap(carryOut(created, command), answer)
    },
    update: (team_id, id, change, command = {}) => {
      const owner = { team_id, id }
      const decide = Effect.fnUntraced(function* (row: Row, at: Date) {
        const next = yield* valuesOf(owner, yield* Effect.fromResult(change(yield* fieldsOf(row))), row, at)
        return special.transition === undefined ? next : yield* Effect.fromResult(special.transition(row, next, at))
      })
      return Effect.flatMap(carryOutInOne(advance(owner, command, decide), command), answer)
    },
    switch: (team_id, id, to, command = {}) => {
      const { column, on } = switches[to as Switch]
      const decide = (row: Row, at: Date) => {
        if (special.transition !== undefined) return Effect.fromResult(special.transition(row, to as Switch, at))
        const isOn = (row as unknown as Values)[column] !== null
        return Effect.succeed(isOn === on ? null : { [column]: on ? at : null })
      }
      return Effect.flatMap(carryOutInOne(advance({ team_id, id }, command, decide), command), answer)
    },
    delete: (team_id, id, command = {}) => {
      const decide = Effect.fnUntraced(function* (row: Row, at: Date) {
        return { deleted_at: at, ...(special.remove === undefined ? {} : yield* special.remove(row, at)) }
      })
      return Effect.flatMap(carryOutInOne(advance({ team_id, id }, command, decide), command), ({ row }) =>
        special.deleted === undefined ? Effect.undefined : query(special.deleted(row))
      )
    }
  }
})
