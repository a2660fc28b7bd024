import { expect, layer } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { Connections } from "../src/control/Connections.ts"
import { Destinations } from "../src/control/Destinations.ts"
import { Transformations } from "../src/control/Transformations.ts"
import * as ControlPlane from "./controlPlane.ts"

const { connectionFields, createConnection, createSource, createDestination, destinationFields, team } = ControlPlane

const code = 'addHandler("transform", (request) => request)'

/**
 * Counts are read from a view that loses a conflict, once, at the time a test asks for: the statement that has failed has ended
 * its transaction, whose every further statement is refused.
 */
const conflicts = Layer.effectDiscard(
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`alter view counting rename to counting_so_far`
    yield* sql`create sequence conflicts start 2`
    yield* sql.unsafe(`
      create function loses_a_conflict() returns boolean language plpgsql as $$
      begin
        if nextval('conflicts') = 1 then
          raise exception 'lost to another transaction' using errcode = '40001';
        end if;
        return true;
      end $$`)
    yield* sql`create view counting as select * from counting_so_far where (select loses_a_conflict())`
  })
).pipe(Layer.orDie)

const world = conflicts.pipe(Layer.provideMerge(Transformations.layer), Layer.provideMerge(ControlPlane.layer))

layer(world, { excludeTestServices: true })("Transactions that lose a conflict while they read their answer", (it) => {
  const commands = {
    "create a destination that exists": Effect.gen(function* () {
      const id = newId(prefixes.destination, Date.now())
      const create = (yield* Destinations).create(team, id, destinationFields(), { id: "create" })
      yield* create
      return create
    }),
    "update a destination": Effect.gen(function* () {
      const { id } = yield* createDestination()
      return (yield* Destinations).update(team, id, (stored) =>
        Result.succeed({ ...stored, auth: "unchanged" as const })
      )
    }),
    "disable a destination": Effect.gen(function* () {
      const { id } = yield* createDestination()
      return (yield* Destinations).switch(team, id, "disable")
    }),
    "create a connection": Effect.gen(function* () {
      const source_id = (yield* createSource()).id
      const destination_id = (yield* createDestination()).id
      const fields = connectionFields({ source_id, destination_id })
      return (yield* Connections).create(team, newId(prefixes.connection, Date.now()), fields)
    }),
    "pause a connection": Effect.gen(function* () {
      const { id } = yield* createConnection()
      return (yield* Connections).switch(team, id, "pause")
    }),
    "create a transformation that exists": Effect.gen(function* () {
      const id = newId(prefixes.transformation, Date.now())
      const fields = { name: ControlPlane.unique("t"), code, env: {}, isolation: null }
      const create = (yield* Transformations).create(team, id, fields, { id: "create" })
      yield* create
      return create
    })
  }

  for (const [name, prepare] of Object.entries(commands)) {
    it.effect(`A transaction that loses a conflict is repeated as a whole: ${name}`, () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const command: Effect.Effect<unknown, unknown> = yield* prepare
        yield* sql`select setval('conflicts', 1, false)`
        yield* command
        const [row] = yield* sql<{ reads: number }>`select last_value::int4 as reads from conflicts`
        expect(row?.reads ?? 0).toBeGreaterThanOrEqual(2)
      })
    )
  }
})
