import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { bootstrapTeam, demoTeam, findTeamByApiKey, signingSecrets } from "../src/Teams.ts"
import * as ControlPlane from "./controlPlane.ts"

const key = (text: string) => ({ apiKey: Redacted.make(text) })
const firstKey = `gwk_${"0123456789abcdef".repeat(4)}`
const secondKey = "a key of the operator"

layer(ControlPlane.layer, { excludeTestServices: true })("Teams", (it) => {
  it.effect("the demo team is made once; another API key replaces the first", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* bootstrapTeam(key(firstKey))
      const [first] = yield* sql`select * from project_secrets`
      assert.strictEqual(first?.["api_key_masked"], "gwk_****cdef")
      assert.match(String(first?.["signing_secret_masked"]), /^gws_\*{4}[0-9a-f]{4}$/)
      assert.notInclude(JSON.stringify(first), firstKey)
      assert.strictEqual(yield* findTeamByApiKey(firstKey), demoTeam)

      yield* bootstrapTeam(key(firstKey))
      const [repeated] = yield* sql`select * from project_secrets`
      assert.deepStrictEqual(repeated, first)

      yield* bootstrapTeam(key(secondKey))
      assert.strictEqual(yield* findTeamByApiKey(firstKey), null)
      assert.strictEqual(yield* findTeamByApiKey(secondKey), demoTeam)
      const [second] = yield* sql`select * from project_secrets`
      assert.strictEqual(second?.["api_key_masked"], "****ator")
      assert.strictEqual(second?.["signing_secret"], first?.["signing_secret"])
      assert.strictEqual((yield* sql`select 1 from teams where id = ${demoTeam}`).length, 1)
    })
  )

  it.effect("refuses an API key that can be guessed", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(bootstrapTeam(key("elevenchars")))
      assert.strictEqual(error.message, "api_key must have at least 12 characters")
    })
  )

  it.effect("gives the signing secrets in the clear, the former one while it is valid", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* bootstrapTeam(key(firstKey))
      const texts = Effect.map(signingSecrets(demoTeam), (secrets) => secrets.map(Redacted.value))
      const [current, ...none] = yield* texts
      assert.match(current ?? "", /^gws_[0-9a-f]{64}$/)
      assert.deepStrictEqual(none, [])
      assert.deepStrictEqual(yield* signingSecrets("tm_unknown"), [])
      // A secret opens in its own place only.
      yield* sql`update project_secrets set previous_signing_secret = signing_secret,
        previous_signing_secret_until = now() + interval '1 hour'`
      assert.strictEqual((yield* Effect.flip(signingSecrets(demoTeam)))._tag, "SecretUnreadable")
      yield* sql`update project_secrets set previous_signing_secret_until = now() - interval '1 second'`
      assert.deepStrictEqual(yield* texts, [current])
    })
  )
})
