import { layer } from "@effect/vitest"
import { Effect, Result } from "effect"
import { expect } from "vitest"
import { agreement } from "../src/Agreement.ts"
import { answers } from "../src/Database.ts"
import { parseSecretKeys, Secrets } from "../src/secrets/Secrets.ts"
import * as ControlPlane from "./controlPlane.ts"

layer(ControlPlane.layer, { excludeTestServices: true })("Settings shared by the processes of a database", (it) => {
  it.effect("All processes use the settings that the first process stored", () =>
    Effect.gen(function* () {
      expect(yield* agreement(64)).toEqual({ keysFit: true, shards: 64 })
      expect(yield* agreement(32)).toEqual({ keysFit: true, shards: 64 })
      const otherKeys = Secrets.layer({ keys: Result.getOrThrow(parseSecretKeys("cd".repeat(32))) })
      expect(yield* Effect.provide(agreement(64), otherKeys)).toEqual({ keysFit: false, shards: 64 })
    })
  )

  it.effect("A process is ready when the database answers", () =>
    Effect.gen(function* () {
      expect(yield* answers).toBe(true)
    })
  )
})
