import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { foldAddress } from "@tidegate/model/EmailAddress"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { newId, prefixes } from "@tidegate/model/Ids"
import type { Membership, SignedIn } from "@tidegate/model/Session"
import { gathered } from "../Gathered.ts"
import { hashToken } from "../secrets/Secrets.ts"
import { binsTeam, demoTeam } from "./Teams.ts"
import { query, transaction } from "../Transaction.ts"

/** A person by the word of an issuer. */
export interface Identity {
  readonly issuer: string
  readonly subject: string
  readonly email: string | null
  readonly email_verified: boolean
  readonly name: string | null
  readonly picture_url: string | null
}

/** The user of demo sessions, where they are allowed. */
export const demoUser = "usr_demo"

/** The limit of one user: the oldest session ends when a new one exceeds it. */
const maxSessions = 1_000
/** The limit of one user: it bounds the answer about a session. */
export const maxMemberships = 1_000

const sessionMs = 7 * 24 * 3_600_000
const demoSessionMs = 24 * 3_600_000

interface Row {
  readonly token_hash: string
  readonly user_id: string
  readonly email: string | null
  readonly email_verified: boolean
  readonly name: string | null
  readonly picture_url: string | null
  readonly team_id: string
  readonly expires_at: Date
  readonly memberships: ReadonlyArray<Membership>
}

const signedIn = (row: Row): SignedIn => ({
  tokenHash: row.token_hash,
  user: { id: row.user_id, email: row.email, name: row.name, picture_url: row.picture_url },
  emailVerified: row.email_verified,
  team: row.team_id,
  expiresAt: row.expires_at,
  memberships: row.memberships
})

/** The unexpired sessions of tokens with these hashes. */
const sessionsByHash = Effect.fnUntraced(function* (
  hashes: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyMap<string, SignedIn>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const now = new Date(yield* Clock.currentTimeMillis)
  const rows = yield* sql<Row>`
    select s.token_hash, s.user_id, u.email, u.email_verified, u.name, u.picture_url, s.team_id, s.expires_at,
      coalesce((select json_agg(json_build_object('team_id', m.team_id, 'role', m.role)) from (
        select m.team_id, m.role from memberships m where m.user_id = s.user_id
        order by m.created_at, m.team_id limit ${maxMemberships}) m), '[]'::json) as memberships
    from sessions s join users u on u.id = s.user_id
    where s.token_hash = any(${[...hashes]}) and s.expires_at > ${now}`
  return new Map(rows.map((row) => [row.token_hash, signedIn(row)]))
})

/** Finds the session of a token; null when it has ended or never existed. It is found by the token's hash, as API keys are. */
export const sessionsByToken: Effect.Effect<
  (token: string) => Effect.Effect<SignedIn | null, GatewayError>,
  never,
  SqlClient.SqlClient
> = Effect.map(gathered(sessionsByHash), (sessions) => (token) => {
  const hash = hashToken(token)
  return query(Effect.map(sessions([hash]), (found) => found.get(hash) ?? null))
})

/** Starts a session of `user` on a team, until its time is over. */
const begin = Effect.fnUntraced(function* (user: string, team: string, token: string, lastsMs: number) {
  const sql = yield* SqlClient.SqlClient
  const now = yield* Clock.currentTimeMillis
  yield* sql`insert into sessions (token_hash, user_id, team_id, created_at, expires_at)
    values (${hashToken(token)}, ${user}, ${team}, ${new Date(now)}, ${new Date(now + lastsMs)}) on conflict do nothing`
  yield* sql`delete from sessions where token_hash in (
    select token_hash from sessions where user_id = ${user} order by created_at desc, token_hash offset ${maxSessions})`
  const begun = (yield* sessionsByHash([hashToken(token)])).get(hashToken(token))
  return begun ?? (yield* Effect.die("a session that has just begun is over"))
})

/** Makes the demo user an owner of the demo team, and signs it in. */
export const signInDemo = Effect.fnUntraced(function* (
  token: string
): Effect.fn.Return<SignedIn, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const now = new Date(yield* Clock.currentTimeMillis)
  return yield* transaction(sql)(
    Effect.gen(function* () {
      yield* sql`insert into users (id, issuer, subject, name, created_at, updated_at)
        values (${demoUser}, '', 'demo', 'Demo', ${now}, ${now}) on conflict do nothing`
      yield* sql`insert into memberships (team_id, user_id, role, created_at)
        values (${demoTeam}, ${demoUser}, 'owner', ${now}) on conflict do nothing`
      return yield* begin(demoUser, demoTeam, token, demoSessionMs)
    })
  )
})

/** The conditions of a sign-in. */
export interface Admission {
  readonly isSiteAdmin: boolean
  /** The team that the session is to act on. */
  readonly team_id: string | null
  /** Whether a person without a team gets one of their own; if not, they are refused. */
  readonly foundsTeam: boolean
}

/** Stores what an issuer says about a person. A name that they chose themselves stays. */
const recordUser = Effect.fnUntraced(function* (who: Identity, now: number) {
  const sql = yield* SqlClient.SqlClient
  const at = new Date(now)
  const [user] = yield* sql<{ id: string }>`
    insert into users (id, issuer, subject, email, email_verified, name, picture_url, created_at, updated_at)
    values (${newId(prefixes.user, now)}, ${who.issuer}, ${who.subject}, ${who.email}, ${who.email_verified}, ${who.name},
      ${who.picture_url}, ${at}, ${at})
    on conflict (issuer, subject) do update set email = excluded.email, email_verified = excluded.email_verified,
      name = case when users.named then users.name else excluded.name end, picture_url = excluded.picture_url,
      updated_at = excluded.updated_at
    returning id`
  if (who.email !== null && who.email_verified) yield* takePlaceOfExpected(user!.id, who.issuer, who.email)
  return user!.id
})

/** Gives a user the memberships that were prepared for that address. The issuer has to confirm that the address is theirs. */
const takePlaceOfExpected = Effect.fnUntraced(function* (user: string, issuer: string, email: string) {
  const sql = yield* SqlClient.SqlClient
  const [expected] = yield* sql<{ id: string }>`
    select id from users where issuer = ${issuer} and subject is null and email = ${foldAddress(email)} for update`
  if (expected === undefined) return
  yield* sql`
    insert into memberships (team_id, user_id, role, created_at)
    select team_id, ${user}, role, created_at from memberships where user_id = ${expected.id}
    on conflict (team_id, user_id) do update set role = 'owner' where excluded.role = 'owner'`
  yield* sql`delete from memberships where user_id = ${expected.id}`
  yield* sql`delete from users where id = ${expected.id}`
})

/** The team that a session acts on when a call names none. */
const teamFor = Effect.fnUntraced(function* (user: string, name: string, admission: Admission, now: number) {
  const sql = yield* SqlClient.SqlClient
  const { foundsTeam, isSiteAdmin, team_id: asked } = admission
  if (asked !== null) {
    const [may] = yield* isSiteAdmin
      ? sql`select from teams where id = ${asked} and id <> ${binsTeam}`
      : sql`select from memberships where user_id = ${user} and team_id = ${asked}`
    return may === undefined ? yield* fail("TEAM_FORBIDDEN", "the user cannot act on this team") : asked
  }
  const [first] = yield* sql<{ team_id: string }>`
    select team_id from memberships where user_id = ${user} order by created_at, team_id limit 1`
  if (first !== undefined) return first.team_id
  if (isSiteAdmin) return demoTeam
  if (!foundsTeam) return yield* fail("TEAM_FORBIDDEN", "the user is a member of no team here")
  const id = newId(prefixes.team, now)
  yield* sql`insert into teams (id, name, created_at) values (${id}, ${name}, ${new Date(now)})`
  yield* sql`insert into memberships (team_id, user_id, role, created_at)
    values (${id}, ${user}, 'owner', ${new Date(now)})`
  return id
})

/** Signs in a person whom an issuer has authenticated. */
export const signIn = Effect.fnUntraced(function* (
  who: Identity,
  token: string,
  admission: Admission
): Effect.fn.Return<SignedIn, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  return yield* transaction(sql)(
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      // The row stays locked to the end: a person who signs in twice at once creates one team.
      const user = yield* recordUser(who, now)
      const team = yield* teamFor(user, who.name ?? who.email ?? "Team", admission, now)
      return yield* begin(user, team, token, sessionMs)
    })
  )
})

/** Stores the name that a user has chosen. */
export const rename = Effect.fnUntraced(function* (user: string, name: string) {
  const sql = yield* SqlClient.SqlClient
  const now = new Date(yield* Clock.currentTimeMillis)
  yield* sql`update users set name = ${name}, named = true, updated_at = ${now} where id = ${user}`
})

/** Ends a session. */
export const signOut = Effect.fnUntraced(function* ({ tokenHash }: SignedIn) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`delete from sessions where token_hash = ${tokenHash}`
})

/** Whether the team exists: a site admin may name any. */
export const teamExists = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  return (yield* sql`select from teams where id = ${id} and id <> ${binsTeam} and deleting_since is null`).length > 0
})
