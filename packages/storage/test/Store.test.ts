import { expect, layer } from "@effect/vitest"
import { Effect, Exit, Layer, Result } from "effect"
import { SqlClient } from "effect/sql"
import { fail } from "@tidegate/model/GatewayError"
import { newId, prefixes } from "@tidegate/model/Ids"
import { source, type SourceFields } from "@tidegate/resources/Source"
import { Connections } from "../src/control/Connections.ts"
import { Sources } from "../src/control/Sources.ts"
import { makeStore } from "../src/control/MakeStore.ts"
import type { Command } from "../src/control/Store.ts"
import { Transformations } from "../src/control/Transformations.ts"
import * as ControlPlane from "./controlPlane.ts"

/** What every store does with commands, shown on those there are. */

const { createConnection, createSource, sourceFields, team, concernedBy, unique, versionOf } = ControlPlane

const world = Transformations.layer.pipe(Layer.provideMerge(ControlPlane.layer))

const change = (fields: Partial<SourceFields>) => (stored: SourceFields) =>
  Result.succeed({ ...stored, auth: "unchanged" as const, ...fields })

layer(world, { excludeTestServices: true })("Command of a resource", (it) => {
  it.effect("A repeated command changes the resource once and returns what is stored", () =>
    Effect.gen(function* () {
      const sources = yield* Sources
      const { id } = yield* createSource()
      const rename = (command: Command) => sources.update(team, id, change({ description: "renamed" }), command)
      const first = yield* rename({ id: "one" })
      const version = yield* versionOf(id)
      expect(yield* rename({ id: "one" })).toEqual(first)
      expect(yield* versionOf(id)).toBe(version)
      yield* rename({ id: "two" })
      expect(yield* versionOf(id)).toBe((version ?? 0) + 1)
    })
  )

  it.effect("A repeated command does not undo later changes", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const { id } = yield* createConnection()
      const paused = yield* connections.switch(team, id, "pause", { id: "pause" })
      expect(paused.paused_at).not.toBeNull()
      expect(yield* connections.switch(team, id, "pause", { id: "pause" })).toEqual(paused)
      const resumed = yield* connections.switch(team, id, "unpause", { id: "resume" })
      expect(resumed.paused_at).toBeNull()
      expect(yield* connections.switch(team, id, "pause", { id: "pause" })).toEqual(resumed)
    })
  )

  it.effect("A repeated delete command succeeds, and another delete finds nothing", () =>
    Effect.gen(function* () {
      const sources = yield* Sources
      const connection = yield* createConnection()
      const remove = (id: string) =>
        concernedBy(({ afterCommit }) =>
          sources.delete(team, connection.source_id, { id, ...(afterCommit ? { afterCommit } : {}) })
        )
      const first = yield* remove("delete")
      expect(first.cancelled).toEqual([connection.id])
      // The first command may have ended before it sent a notification.
      expect(yield* remove("delete")).toEqual({ ...first, cancelled: [] })
      expect((yield* Effect.flip(remove("again"))).code).toBe("NOT_FOUND")
    })
  )

  it.effect("A create command that is sent twice creates one resource", () =>
    Effect.gen(function* () {
      const sources = yield* Sources
      const id = newId(prefixes.source, Date.now())
      const fields = sourceFields()
      const both = yield* Effect.all(
        [sources.create(team, id, fields, { id: "c" }), sources.create(team, id, fields, { id: "c" })],
        { concurrency: "unbounded" }
      )
      expect(both[0]).toEqual(both[1])
    })
  )

  it.effect("A command notifies others after its commit, before its answer is read and even if that fails", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const seen: Array<string> = []
      // Not the real records: they are what fails here.
      const store = yield* makeStore(source, {
        show: () =>
          Effect.sync(() => seen.push("read")).pipe(Effect.andThen(sql`select * from no_such_table`), Effect.as([]))
      })
      const { id } = yield* createSource()
      const name = unique("renamed")
      const afterCommit = () =>
        Effect.gen(function* () {
          // Somebody else sees it: it is committed, and no row is locked.
          const [row] = yield* Effect.orDie(
            sql<{ name: string }>`select name from sources where id = ${id} for update nowait`
          )
          seen.push(`settled ${row?.name}`)
        })
      const exit = yield* Effect.exit(store.update(team, id, change({ name }), { id: "c", afterCommit }))
      expect(Exit.isFailure(exit)).toBe(true)
      expect(seen[0]).toBe(`settled ${name}`)
      expect(seen).toContain("read")
      expect((yield* (yield* Sources).get(team, id)).name).toBe(name)
    })
  )

  it.effect("A command whose notification failed reports that, and notifies when it is repeated", () =>
    Effect.gen(function* () {
      const sources = yield* Sources
      const { source_id } = yield* createConnection()
      const late = fail("QUEUE_UNAVAILABLE", "a destination does not answer")
      const disable = (afterCommit: NonNullable<Command["afterCommit"]>) =>
        sources.switch(team, source_id, "disable", { id: "off", afterCommit })
      expect(yield* Effect.flip(disable(() => Effect.fail(late)))).toBe(late)
      let concerned: ReadonlyArray<string> = []
      const answer = yield* disable((all) => Effect.sync(() => void (concerned = all.destinations)))
      expect(answer.status).toBe("disabled")
      expect(concerned).toHaveLength(1)
    })
  )
})
