import { expect, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { replaceSecrets, signingSecrets } from "../src/teams/ProjectSecrets.ts"
import { teamKeysByText } from "../src/secrets/KeysInUse.ts"
import { bootstrapTeam, demoTeam } from "../src/teams/Teams.ts"
import * as ControlPlane from "./controlPlane.ts"

const key = (text: string) => ({ apiKey: Redacted.make(text) })
const firstKey = `gwk_${"0123456789abcdef".repeat(4)}`
const secondKey = "a key of the operator"

layer(ControlPlane.layer, { excludeTestServices: true })("Teams", (it) => {
  it.effect("The demo team is created once, and another API key replaces the first", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const find = yield* teamKeysByText
      const findTeam = (text: string) => Effect.map(find(text), (found) => found?.key.team ?? null)
      yield* bootstrapTeam(key(firstKey))
      const [first] = yield* sql`select * from project_secrets`
      expect(first?.["api_key_masked"]).toBe("gwk_****cdef")
      expect(String(first?.["signing_secret_masked"])).toMatch(/^gws_\*{4}[0-9a-f]{4}$/)
      expect(JSON.stringify(first)).not.toContain(firstKey)
      expect(yield* findTeam(firstKey)).toBe(demoTeam)

      yield* bootstrapTeam(key(firstKey))
      const [repeated] = yield* sql`select * from project_secrets`
      expect(repeated).toStrictEqual(first)

      yield* bootstrapTeam(key(secondKey))
      expect(yield* findTeam(firstKey)).toBe(null)
      expect(yield* findTeam(secondKey)).toBe(demoTeam)
      const [second] = yield* sql`select * from project_secrets`
      expect(second?.["api_key_masked"]).toBe("****ator")
      expect(second?.["signing_secret"]).toBe(first?.["signing_secret"])
      expect((yield* sql`select 1 from teams where id = ${demoTeam}`).length).toBe(1)
    })
  )

  it.effect("A rotated key stays valid at the next start with the key that was configured before", () =>
    Effect.gen(function* () {
      const find = yield* teamKeysByText
      const findTeam = (text: string) => Effect.map(find(text), (found) => found?.key.team ?? null)
      yield* bootstrapTeam(key(firstKey))
      yield* replaceSecrets(demoTeam, { api_key: "a rotated key" })
      yield* bootstrapTeam(key(firstKey))
      expect(yield* findTeam(firstKey)).toBe(null)
      expect(yield* findTeam("a rotated key")).toBe(demoTeam)
      yield* bootstrapTeam(key(secondKey))
      expect(yield* findTeam(secondKey)).toBe(demoTeam)
    })
  )

  it.effect(
    "A process that keeps the key of another one is told so, and makes its own valid only where there is none",
    () =>
      Effect.gen(function* () {
        const find = yield* teamKeysByText
        const findTeam = (text: string) => Effect.map(find(text), (found) => found?.key.team ?? null)
        const sql = yield* SqlClient.SqlClient
        yield* sql`delete from project_secrets`
        const keeping = (text: string) => bootstrapTeam({ ...key(text), keepsOther: true })
        expect(yield* keeping(firstKey)).toBe(true)
        expect(yield* keeping(firstKey)).toBe(true)
        expect(yield* keeping(secondKey)).toBe(false)
        expect(yield* findTeam(firstKey)).toBe(demoTeam)
        expect(yield* findTeam(secondKey)).toBe(null)
        expect(yield* bootstrapTeam(key(secondKey))).toBe(true)
        expect(yield* findTeam(secondKey)).toBe(demoTeam)
      })
  )

  it.effect("An API key that is easy to guess is rejected", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(bootstrapTeam(key("elevenchars")))
      expect(error.message).toBe("api_key must have at least 12 characters")
    })
  )

  it.effect("Signing secrets are returned in plain text, the former one while it is valid", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* bootstrapTeam(key(firstKey))
      const texts = Effect.map(signingSecrets(demoTeam), (secrets) =>
        secrets.map(({ secret }) => Redacted.value(secret))
      )
      const [current, ...none] = yield* texts
      expect(current ?? "").toMatch(/^gws_[0-9a-f]{64}$/)
      expect(none).toStrictEqual([])
      expect(yield* signingSecrets("tm_unknown")).toStrictEqual([])
      // A secret opens in its own place only.
      yield* sql`update project_secrets set previous_signing_secret = signing_secret,
        previous_signing_secret_until = now() + interval '1 hour'`
      expect((yield* Effect.flip(signingSecrets(demoTeam)))._tag).toBe("SecretUnreadable")
      yield* sql`update project_secrets set previous_signing_secret_until = now() - interval '1 second'`
      expect(yield* texts).toStrictEqual([current])
    })
  )
})
