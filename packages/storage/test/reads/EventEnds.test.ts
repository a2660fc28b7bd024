import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import * as EventReads from "../../src/reads/EventReads.ts"
import { countEvents } from "../../src/reads/EventTally.ts"
import * as ControlPlane from "../controlPlane.ts"
import { anyEvent, firstPage } from "./Filters.ts"

/*
 * Events have no index by source or destination: lists go along the connections that lead, or once led, from one to the other.
 */

const { createConnection, insertEvent, team } = ControlPlane

/** The ids in the list and their number in the count. */
const found = Effect.fnUntraced(function* (filter: Partial<EventReads.EventFilter>) {
  const { models } = yield* EventReads.list(team, { ...anyEvent, ...filter }, firstPage, { data: false })
  const { total } = yield* countEvents(
    team,
    { ...anyEvent, ...filter, errorCodes: ["E"] },
    { from: 0, to: Date.now() + 60_000 }
  )
  return { ids: models.map(({ id }) => id).sort(), count: total }
})

const failed = (of: Parameters<typeof insertEvent>[0]) => insertEvent(of, { state: "FAILED" })

layer(ControlPlane.layer, { excludeTestServices: true })("Events of sources and destinations", (it) => {
  it.effect("A connection that now leads elsewhere keeps its events at the source and destination that they had", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [one, other] = [yield* createConnection(), yield* createConnection()]
      const before = yield* failed(one)
      const { destination_id, source_id } = other
      yield* sql`update connections set destination_id = ${destination_id}, source_id = ${source_id} where id = ${one.id}`
      const after = yield* failed({ ...one, destination_id, source_id })
      const others = yield* failed(other)
      yield* sql`update events set error_code = 'E'`

      for (const filter of [{ destinations: [one.destination_id] }, { sources: [one.source_id] }]) {
        expect(yield* found(filter)).toEqual({ ids: [before], count: 1 })
      }
      for (const filter of [{ destinations: [destination_id] }, { sources: [source_id] }]) {
        expect(yield* found(filter)).toEqual({ ids: [after, others].sort(), count: 2 })
      }
      expect(yield* found({ sources: [one.source_id], destinations: [destination_id] })).toEqual({ ids: [], count: 0 })
      expect(yield* found({ connections: [one.id], destinations: [destination_id] })).toEqual({
        ids: [after],
        count: 1
      })
    })
  )

  it.effect("A destination with more connections than are read one by one has all of its events listed", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { destination_id } = yield* createConnection()
      const connections = yield* Effect.forEach(Array.from({ length: 101 }), () => createConnection())
      yield* sql`update connections set destination_id = ${destination_id} where id = any(${connections.map(({ id }) => id)})`
      const made = yield* Effect.forEach(connections.slice(0, 5), (one) => failed({ ...one, destination_id }))
      yield* sql`update events set error_code = 'E'`
      expect(yield* found({ destinations: [destination_id] })).toEqual({ ids: made.sort(), count: 5 })
    })
  )

  it.effect("A source of another team has no events here", () =>
    Effect.gen(function* () {
      const one = yield* createConnection()
      yield* failed(one)
      const { models } = yield* EventReads.list(
        ControlPlane.otherTeam,
        { ...anyEvent, sources: [one.source_id] },
        firstPage,
        { data: false }
      )
      expect(models).toEqual([])
    })
  )
})
