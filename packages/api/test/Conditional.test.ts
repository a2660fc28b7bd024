import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { call, layer as server } from "./ControlServer.ts"

layer(server, { excludeTestServices: true })("Conditional read", (it) => {
  it.effect("Read has an entity tag and answers 304 until the resource changes", () =>
    Effect.gen(function* () {
      const { body: made } = yield* call("POST", "/sources", { body: { name: "a", type: "WEBHOOK" } })
      for (const path of [`/sources/${made.id}`, "/sources", `/sources?id=${made.id}&limit=1`, "/auth/me"]) {
        const first = yield* call("GET", path)
        const etag = first.headers.get("etag")!
        expect([path, first.status, etag]).toEqual([path, 200, expect.stringMatching(/^"[\w-]{27}"$/)])
        for (const had of [etag, `W/${etag}`, `"x", ${etag}`, "*"]) {
          const again = yield* call("GET", path, { headers: { "if-none-match": had } })
          expect([again.status, again.body, again.headers.get("etag")]).toEqual([304, "", etag])
          expect(again.headers.get("x-content-type-options")).toBe("nosniff")
        }
        expect((yield* call("GET", path, { headers: { "if-none-match": '"x"' } })).body).toEqual(first.body)
      }
      const before = (yield* call("GET", `/sources/${made.id}`)).headers.get("etag")!
      yield* call("PATCH", `/sources/${made.id}`, { body: { description: "changed" } })
      const after = yield* call("GET", `/sources/${made.id}`, { headers: { "if-none-match": before } })
      expect([after.status, after.body.description]).toEqual([200, "changed"])
    })
  )

  it.effect("Failed reads and changes have no entity tag", () =>
    Effect.gen(function* () {
      const missing = yield* call("GET", "/sources/src_00000000000000000000000000", {
        headers: { "if-none-match": "*" }
      })
      expect([missing.status, missing.headers.get("etag")]).toEqual([404, null])
      const { headers } = yield* call("POST", "/sources", { body: { name: "b", type: "WEBHOOK" } })
      expect(headers.get("etag")).toBe(null)
    })
  )

  it.effect("Conditional change is refused and changes nothing", () =>
    Effect.gen(function* () {
      const { body: made } = yield* call("POST", "/sources", { body: { name: "c", type: "WEBHOOK" } })
      const path = `/sources/${made.id}`
      for (const method of ["PATCH", "PUT", "DELETE"]) {
        const body = method === "DELETE" ? {} : { body: { description: "no" } }
        const answer = yield* call(method, path, { ...body, headers: { "if-match": '"stale"' } })
        expect([answer.status, answer.body.data?.fields?.[0]?.path]).toEqual([400, "If-Match"])
      }
      expect((yield* call("GET", path)).body.description).not.toBe("no")
      const any = yield* call("PATCH", path, { body: { description: "yes" }, headers: { "if-match": "*" } })
      expect([any.status, any.body.description]).toEqual([200, "yes"])
    })
  )
})
