import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { call, layer as server, teams } from "./ControlServer.ts"

const makeIssue = Effect.fnUntraced(function* (code: string, status: string) {
  const sql = yield* SqlClient.SqlClient
  const made = yield* call("POST", "/destinations", {
    body: { name: `of ${code}`, type: "HTTP", config: { url: "https://target.test" } }
  })
  const id = newId(prefixes.issue, Date.now())
  yield* sql`insert into issues (id, team_id, destination_id, error_code, response_status, status, count, event_ids, first_seen_at,
      last_seen_at, opened_at, resolved_at, expires_at)
    values (${id}, ${teams.a.id}, ${made.body.id}, ${code}, 503, ${status}, 1, '{evt_one}', now(), now(), now(),
      ${status === "resolved" ? new Date() : null}::timestamptz, now())`
  return { id, destination: made.body.id as string }
})

layer(server, { excludeTestServices: true })("Issues", (it) => {
  it.effect("An issue is acknowledged or dismissed, and says who did it; a resolved one stays resolved", () =>
    Effect.gen(function* () {
      const { destination, id } = yield* makeIssue("BAD_RESPONSE", "open")
      const path = `/issues/${id}`
      const shown = yield* call("GET", path)
      expect(shown.body).toMatchObject({
        id,
        destination_id: destination,
        destination_name: "of BAD_RESPONSE",
        status: "open",
        response_status: 503,
        event_ids: ["evt_one"],
        changed_by: null,
        resolved_at: null
      })
      for (const [verb, status] of [
        ["acknowledge", "acknowledged"],
        ["dismiss", "dismissed"],
        ["dismiss", "dismissed"],
        ["acknowledge", "acknowledged"]
      ]) {
        const answer = yield* call("POST", `${path}/${verb}`)
        expect(answer.body).toEqual({ ...shown.body, status, changed_by: answer.body.changed_by })
        expect((yield* call("GET", path)).body).toEqual(answer.body)
      }
      const over = yield* makeIssue("TIMEOUT", "resolved")
      const kept = yield* call("POST", `/issues/${over.id}/dismiss`)
      expect(kept.body).toMatchObject({ status: "resolved", changed_by: null, resolved_at: expect.any(String) })
    })
  )

  it.effect("An issue of another team is not found, and is not changed", () =>
    Effect.gen(function* () {
      const { id } = yield* makeIssue("DNS_LOOKUP_FAILED", "open")
      const { key } = teams.b
      for (const [method, path] of [
        ["GET", `/issues/${id}`],
        ["POST", `/issues/${id}/acknowledge`],
        ["POST", `/issues/${id}/dismiss`]
      ] as const) {
        expect((yield* call(method, path, { key })).status).toBe(404)
      }
      expect((yield* call("GET", `/issues/${id}`)).body.status).toBe("open")
    })
  )
})
