import { layer } from "@effect/vitest"
import { Effect, Result } from "effect"
import { expect } from "vitest"
import { agreement } from "../src/Agreement.ts"
import { answers } from "../src/Database.ts"
import { parseSecretKeys, Secrets } from "../src/secrets/Secrets.ts"
import * as ControlPlane from "./controlPlane.ts"

layer(ControlPlane.layer, { excludeTestServices: true })("the processes of a database", (it) => {
  it.effect("go by what the first of them has settled", () =>
    Effect.gen(function* () {
      expect(yield* agreement(64)).toEqual({ keysFit: true, shards: 64 })
      expect(yield* agreement(32)).toEqual({ keysFit: true, shards: 64 })
      const otherKeys = Secrets.layer({ keys: Result.getOrThrow(parseSecretKeys("cd".repeat(32))) })
      expect(yield* Effect.provide(agreement(64), otherKeys)).toEqual({ keysFit: false, shards: 64 })
    })
  )

  it.effect("are ready when it answers", () =>
    Effect.gen(function* () {
      expect(yield* answers).toBe(true)
    })
  )
})
