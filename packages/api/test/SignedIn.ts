import { randomBytes } from "node:crypto"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { hashToken } from "@tidegate/storage/secrets/Secrets"
import { SignInSettings } from "../src/SignInSettings.ts"
import { layer, teams } from "./ControlServer.ts"

/** Somebody new who owns team A, and is signed in for an hour. */
export const somebody = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const token = `ses_${randomBytes(32).toString("hex")}`
  const user = `usr_${randomBytes(8).toString("hex")}`
  yield* sql`insert into users (id, issuer, subject, created_at, updated_at) values (${user}, '', ${user}, now(), now())`
  yield* sql`insert into memberships values (${teams.a.id}, ${user}, 'owner', now())`
  yield* sql`insert into sessions values (${hashToken(token)}, ${user}, ${teams.a.id}, now(), now() + interval '1 hour')`
  return { user, token }
})

const root = "root@example.com"

/** The control API with a site admin. */
export const withAdmins = layer.pipe(
  Layer.provide(
    Layer.effect(
      SignInSettings,
      Effect.map(SignInSettings, (settings) => ({ ...settings, siteAdmins: new Set([root]) }))
    )
  )
)

/** Somebody who may call whatever there is. */
export const siteAdmin = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { token, user } = yield* somebody
  yield* sql`update users set email = ${root}, email_verified = true where id = ${user}`
  return { token }
})
