import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { call, client, layer as server } from "./ControlServer.ts"

layer(server, { timeout: "60 seconds", excludeTestServices: true })("commands", (it) => {
  it.effect("a source created over HTTP is a row, and reads back", () =>
    Effect.gen(function* () {
      const created = yield* call("POST", "/v1/sources", { body: { name: "orders" } })
      expect(created).toMatchObject({ status: 200, body: { name: "orders", type: "WEBHOOK", status: "enabled" } })
      const sql = yield* SqlClient.SqlClient
      expect(yield* sql`select team_id, name from sources where id = ${created.body.id}`).toEqual([
        { team_id: "tm_a", name: "orders" }
      ])
      const read = yield* call("GET", `/sources/${created.body.id}`)
      expect(read).toMatchObject({ status: 200, body: created.body })
    })
  )

  it.effect("the derived client carries a source through its life", () =>
    Effect.gen(function* () {
      const api = yield* client
      const created = yield* api.sources.create({ query: {}, payload: { name: "client", note: "ignored" } })
      const path = { params: { id: created.id }, query: {} }
      expect(yield* api.sources.retrieve(path)).toEqual(created)
      expect((yield* api.sources.disable(path)).status).toBe("disabled")
      expect((yield* api.sources.list({ query: { name: "client", include_disabled: false } })).models).toEqual([])
      expect(yield* api.sources.delete(path)).toEqual({ id: created.id, deleted: true })
      const gone = yield* Effect.flip(api.sources.retrieve(path))
      expect(gone).toMatchObject({ _tag: "GatewayError", code: "NOT_FOUND" })
    })
  )
})
