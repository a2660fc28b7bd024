import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { SqlClient } from "effect/sql"
import { createBin, type NewBin, openBin, rememberedMs } from "../src/Bins.ts"
import { teamExists } from "../src/People.ts"
import { binsTeam } from "../src/Teams.ts"
import * as ControlPlane from "./controlPlane.ts"

const codeOf = <A, R>(effect: Effect.Effect<A, unknown, R>) =>
  Effect.map(Effect.flip(effect), (error) => (error as { readonly code?: string }).code)

const made = Effect.flatMap(createBin(1_000), (bin) =>
  bin instanceof Date ? Effect.die("there is no room for a bin") : Effect.succeed<NewBin>(bin)
)

layer(ControlPlane.layer)("a public bin", (it) => {
  it.effect("is opened by its token, which is not stored", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { expiresAt, id, token } = yield* made
      expect(token).toMatch(/^pbn_[0-9a-f]{48}$/)
      expect(yield* openBin(id, token)).toEqual({ team_id: binsTeam, expires_at: expiresAt })
      expect(yield* codeOf(openBin(id, `${token.slice(0, -1)}x`))).toBe("INVALID_BIN_TOKEN")
      expect(yield* codeOf(openBin(id, ""))).toBe("INVALID_BIN_TOKEN")
      expect(yield* codeOf(openBin((yield* made).id, token))).toBe("INVALID_BIN_TOKEN")
      const [row] = yield* sql`select to_jsonb(b)::text as row from public_bins b where source_id = ${id}`
      expect(String(row!["row"])).not.toContain(token.slice(4))
    })
  )

  it.effect("that nobody has made is not found", () =>
    Effect.gen(function* () {
      const { id, token } = yield* made
      expect(yield* codeOf(openBin(`${id.slice(0, -2)}zz`, token))).toBe("NOT_FOUND")
      expect(yield* codeOf(openBin("src_x", token))).toBe("NOT_FOUND")
    })
  )

  it.effect("ends after an hour to the millisecond, and is forgotten a day later", () =>
    Effect.gen(function* () {
      const { expiresAt, id, token } = yield* made
      yield* TestClock.setTime(expiresAt.getTime() - 1)
      yield* openBin(id, token)
      yield* TestClock.adjust(1)
      expect(yield* codeOf(openBin(id, token))).toBe("BIN_EXPIRED")
      // Whoever has not its token is told nothing of it.
      expect(yield* codeOf(openBin(id, "pbn_"))).toBe("INVALID_BIN_TOKEN")
      yield* TestClock.adjust(rememberedMs - 1)
      expect(yield* codeOf(openBin(id, token))).toBe("BIN_EXPIRED")
      yield* TestClock.adjust(1)
      expect(yield* codeOf(openBin(id, token))).toBe("NOT_FOUND")
    })
  )

  it.effect("is made only as long as there is room, which those that have ended leave", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`delete from public_bins`
      const first = yield* createBin(2)
      yield* TestClock.adjust("10 minutes")
      yield* createBin(2)
      expect(first).toHaveProperty("id")
      expect(yield* createBin(2)).toEqual((first as NewBin).expiresAt)
      yield* TestClock.adjust("50 minutes")
      expect(yield* createBin(2)).toHaveProperty("id")
    })
  )

  it.effect("is of a team that nobody can name", () =>
    Effect.gen(function* () {
      expect(yield* teamExists(binsTeam)).toBe(false)
    })
  )
})
