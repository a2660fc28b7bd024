import { expect, layer } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { SqlClient } from "effect/sql"
import { freshDatabase } from "../../../test/postgres.ts"
import * as Coordination from "@tidegate/coordination/Coordination"
import * as Database from "@tidegate/storage/Database"
import { migrate } from "@tidegate/storage/Migrations"
import { hashToken, parseSecretKeys, Secrets } from "@tidegate/storage/secrets/Secrets"
import { Credentials } from "../src/Credentials.ts"

const key = "gwk_key_of_a_team"
const keys = Result.getOrThrow(parseSecretKeys("0".repeat(64)))

const world = Credentials.layer.pipe(
  Layer.provideMerge(Layer.merge(Secrets.layer({ keys }), Coordination.layerMemory)),
  Layer.provideMerge(Layer.unwrap(Effect.map(freshDatabase, (url) => Database.layer({ url }))))
)

layer(world, { excludeTestServices: true })("Credential changes", (it) => {
  it.effect("Credential watch reports changes from before the wait and changes during the wait", () =>
    Effect.gen(function* () {
      yield* migrate
      const sql = yield* SqlClient.SqlClient
      yield* sql`insert into teams (id, name) values ('tm_a', 'tm_a')`
      yield* sql`insert into project_secrets (team_id, api_key_hash, api_key_masked, signing_secret, signing_secret_masked)
        values ('tm_a', ${hashToken(key)}, '****', 'unused', '****')`
      const changed = yield* (yield* Credentials).changes(key)
      const turn = (to: string) => sql`update teams set key_policy_cutover = ${to} where id = 'tm_a'`
      for (const to of ["pending", "complete"]) {
        yield* turn(to)
        expect(yield* Effect.timeoutOption(changed, "60 seconds")).toMatchObject({ _tag: "Some" })
      }
      // Nothing has changed since.
      expect(yield* Effect.timeoutOption(changed, "50 millis")).toMatchObject({ _tag: "None" })
    })
  )
})
