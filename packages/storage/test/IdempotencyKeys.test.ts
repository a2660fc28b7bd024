import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import {
  beginCall,
  type Begun,
  forgetCall,
  keepAnswer,
  maxAnswer,
  maxKeys,
  releaseCall
} from "../src/teams/IdempotencyKeys.ts"
import { retain } from "../src/retention/Retention.ts"
import { codeOf, mine, other, world } from "./twoTeams.ts"

let made = 0
const callOf = (fingerprint = "f", team_id = mine) => ({ id: `idk_${++made}`, team_id, fingerprint })

const begin = (call: ReturnType<typeof callOf>) =>
  Effect.map(beginCall(call), (begun) => {
    expect(begun.kind).toBe("begun")
    return begun as Begun
  })

layer(world, { excludeTestServices: true })("Answer of a call with an idempotency key", (it) => {
  it.effect("A stored answer is returned again only for the same call, and is encrypted in the database", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const call = callOf()
      const begun = yield* begin(call)
      expect(yield* codeOf(beginCall(call))).toBe("IDEMPOTENCY_KEY_IN_USE")
      yield* keepAnswer(call, begun, 201, '{"secret":"gwp_x"}')
      expect(yield* beginCall(call)).toEqual({ kind: "answered", status: 201, body: '{"secret":"gwp_x"}' })
      expect(yield* codeOf(beginCall({ ...call, fingerprint: "another" }))).toBe("IDEMPOTENCY_KEY_REUSED")
      const [row] = yield* sql`select * from idempotency_keys where id = ${call.id}`
      expect(JSON.stringify(row)).not.toContain("gwp_x")
    })
  )

  it.effect("Only one of several concurrent calls with the same idempotency key begins", () =>
    Effect.gen(function* () {
      const call = callOf()
      const ends = yield* Effect.all(
        Array.from({ length: 8 }, () => Effect.result(beginCall(call))),
        { concurrency: "unbounded" }
      )
      expect(ends.filter(({ _tag }) => _tag === "Success").length).toBe(1)
    })
  )

  it.effect("A call that was never answered can be sent again, but only as the same call", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const call = callOf()
      const first = yield* begin(call)
      yield* sql`update idempotency_keys set held_until = now() - interval '1 second' where id = ${call.id}`
      expect(yield* codeOf(beginCall({ ...call, fingerprint: "another" }))).toBe("IDEMPOTENCY_KEY_REUSED")
      const second = yield* begin(call)
      expect(second.at).toBe(first.at)
      // The first has lost it: what it answers late is nobody's answer.
      yield* keepAnswer(call, first, 201, "late")
      expect(yield* codeOf(beginCall(call))).toBe("IDEMPOTENCY_KEY_IN_USE")
      yield* releaseCall(call, second)
      const third = yield* begin(call)
      yield* forgetCall(call, third)
      expect((yield* begin({ ...call, fingerprint: "another" })).hand).not.toBe(third.hand)
    })
  )

  it.effect("An idempotency key is kept for a day and then forgotten", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const call = callOf()
      yield* keepAnswer(call, yield* begin(call), 201, "{}")
      yield* sql`update idempotency_keys set expires_at = now() - interval '1 second', begun_at = now() - interval '1 day' where id = ${call.id}`
      const anew = yield* begin({ ...call, fingerprint: "another" })
      expect(Date.now() - anew.at).toBeLessThan(3_600_000)
      yield* sql`update idempotency_keys set expires_at = now() - interval '3 days' where id = ${call.id}`
      yield* retain({ payloadDays: 30, recordDays: 90 })
      expect(yield* sql`select from idempotency_keys where id = ${call.id}`).toEqual([])
    })
  )

  it.effect("A call whose answer is too long to store is not repeated", () =>
    Effect.gen(function* () {
      const call = callOf()
      yield* keepAnswer(call, yield* begin(call), 201, "x".repeat(maxAnswer + 1))
      expect(yield* codeOf(beginCall(call))).toBe("IDEMPOTENCY_KEY_IN_USE")
    })
  )

  it.effect("The idempotency keys of a team are limited, without effect on stored ones or other teams", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const known = callOf()
      yield* keepAnswer(known, yield* begin(known), 201, "{}")
      yield* sql`
        insert into idempotency_keys (id, team_id, fingerprint, hand, begun_at, held_until, expires_at)
        select 'idk_full_' || n, ${mine}, '', '', now(), now(), now() + interval '1 hour' from generate_series(1, ${maxKeys}::int) n`
      expect(yield* codeOf(beginCall(callOf()))).toBe("TEAM_LIMIT_REACHED")
      expect(yield* beginCall(known)).toMatchObject({ kind: "answered" })
      yield* begin(callOf("f", other))
      yield* sql`update idempotency_keys set expires_at = now() - interval '1 second' where id like 'idk_full_%'`
      yield* begin(callOf())
      yield* sql`delete from idempotency_keys`
    })
  )
})
