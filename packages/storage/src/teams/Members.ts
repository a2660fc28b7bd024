import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { foldAddress } from "@tidegate/model/EmailAddress"
import { fail, type GatewayError, invalid, notFound } from "@tidegate/model/GatewayError"
import { newId, prefixes } from "@tidegate/model/Ids"
import type { Role } from "@tidegate/model/Permission"
import { maxMemberships } from "./People.ts"
import { binsTeam, holdTeam } from "./Teams.ts"
import { query, transaction } from "../Transaction.ts"

/* Teams and their members. Each call of a session reads its memberships, so a change holds for the next call. */

type Change<A> = Effect.Effect<A, GatewayError, SqlClient.SqlClient>

export interface Team {
  readonly id: string
  readonly name: string
  readonly members: number
}

/** Every team, the oldest first. */
export const listTeams: Change<ReadonlyArray<Team>> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return yield* query(sql<Team>`
    select t.id, t.name, (select count(*)::int from memberships m where m.team_id = t.id) as members
    from teams t where t.id <> ${binsTeam} and t.deleting_since is null order by t.created_at, t.id`)
})

export interface Member {
  readonly id: string
  readonly email: string | null
  readonly name: string | null
  readonly role: Role
  /** Added by address, and not signed in since. */
  readonly isExpected: boolean
  readonly created_at: Date
}

/** The limit of one team: members are shown in one list. */
export const maxMembers = 1_000

const columns = `u.id, u.email, u.name, m.role, u.subject is null as "isExpected", m.created_at`

/** A member of a team. */
export const memberOf = Effect.fnUntraced(function* (
  team_id: string,
  user: string
): Effect.fn.Return<Member, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [member] = yield* query(sql<Member>`
    select ${sql.literal(columns)} from memberships m join users u on u.id = m.user_id
    where m.team_id = ${team_id} and m.user_id = ${user}`)
  return member ?? (yield* notFound("member", user))
})

/** The members of a team, owners first. */
export const listMembers = Effect.fnUntraced(function* (
  team_id: string
): Effect.fn.Return<ReadonlyArray<Member>, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [team] = yield* query(sql`select from teams where id = ${team_id}`)
  if (team === undefined) return yield* notFound("team", team_id)
  return yield* query(sql<Member>`
    select ${sql.literal(columns)} from memberships m join users u on u.id = m.user_id where m.team_id = ${team_id}
    order by m.role desc, m.created_at, u.id`)
})

/** The user with that id or address; null: no user has that address. */
const findUser = Effect.fnUntraced(function* (who: string, issuer: string | null = null) {
  const sql = yield* SqlClient.SqlClient
  if (!who.includes("@")) {
    const [user] = yield* sql<{ id: string }>`select id from users where id = ${who}`
    return user?.id ?? (yield* notFound("user", who))
  }
  // An address that its issuer has not verified may belong to anybody. The first comparison has an index; the second folds A to Z
  // only.
  const users = yield* sql<{ id: string }>`
    select id from users where lower(email) = ${foldAddress(who)} and lower(email collate "C") = ${foldAddress(who)}
      and (email_verified or subject is null)
      and (${issuer}::text is null or issuer = ${issuer}) order by id limit 5`
  if (users.length > 1) {
    const ids = users.map(({ id }) => id).join(", ")
    yield* invalid([{ path: "user", message: `is the address of more than one; say which by the id: ${ids}` }])
  }
  return users[0]?.id ?? null
})

/** Creates a user who has not signed in yet and will do so through that issuer. */
const expect = Effect.fnUntraced(function* (email: string, issuer: string | null) {
  if (issuer === null) {
    const message = "has not signed in yet, and without TIDEGATE_OIDC_ISSUER nobody can"
    return yield* invalid([{ path: "user", message }])
  }
  const sql = yield* SqlClient.SqlClient
  const now = yield* Clock.currentTimeMillis
  const at = new Date(now)
  const [user] = yield* sql<{ id: string }>`
    insert into users (id, issuer, subject, email, created_at, updated_at)
    values (${newId(prefixes.user, now)}, ${issuer}, null, ${foldAddress(email)}, ${at}, ${at})
    on conflict (issuer, email) where subject is null do update set updated_at = excluded.updated_at returning id`
  return user!.id
})

/** The lock makes sure that of two owners who leave at once, one stays. */
const hold = (team_id: string) =>
  Effect.flatMap(team_id === binsTeam ? Effect.succeed(false) : holdTeam(team_id), (isThere) =>
    isThere ? Effect.void : Effect.fail(notFound("team", team_id))
  )

const ownersStay = Effect.fnUntraced(function* (team_id: string) {
  const sql = yield* SqlClient.SqlClient
  const [owner] = yield* sql`select from memberships where team_id = ${team_id} and role = 'owner' limit 1`
  if (owner === undefined)
    yield* fail("RESOURCE_IN_USE", "they are the team's last owner; make somebody else an owner first")
})

const put = Effect.fnUntraced(function* (team_id: string, user: string, role: Role) {
  const sql = yield* SqlClient.SqlClient
  const now = new Date(yield* Clock.currentTimeMillis)
  const [written] = yield* sql`
    insert into memberships (team_id, user_id, role, created_at)
    select ${team_id}, ${user}, ${role}, ${now}
    where (select count(*) from memberships where user_id = ${user} and team_id <> ${team_id}) < ${maxMemberships}
    on conflict (team_id, user_id) do update set role = excluded.role returning 1`
  if (written === undefined) {
    yield* invalid([{ path: "user", message: `is a member of ${maxMemberships} teams already` }])
  }
})

/** The person that a change is about: a user id or an address, and the issuer through which an unknown person has to sign in. */
export interface Who {
  readonly user: string
  readonly issuer: string | null
}

const userOf = ({ issuer, user }: Who) =>
  Effect.flatMap(findUser(user, issuer), (found) => (found === null ? expect(user, issuer) : Effect.succeed(found)))

/** Creates a team with its first owner. `given`: its id; a repeated call with it creates the team only once. */
export const createTeam = Effect.fnUntraced(function* (
  name: string,
  owner: Who,
  given?: string
): Effect.fn.Return<string, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const now = yield* Clock.currentTimeMillis
  const id = given ?? newId(prefixes.team, now)
  yield* transaction(sql)(
    Effect.gen(function* () {
      const user = yield* userOf(owner)
      yield* sql`insert into teams (id, name, created_at) values (${id}, ${name}, ${new Date(now)}) on conflict do nothing`
      yield* put(id, user, "owner")
    })
  )
  return id
})

/** The team is locked, so that members added at the same time are counted. */
const room = Effect.fnUntraced(function* (team_id: string) {
  const sql = yield* SqlClient.SqlClient
  const full = yield* sql`select from memberships where team_id = ${team_id} offset ${maxMembers} limit 1`
  if (full.length > 0) {
    yield* fail("TEAM_LIMIT_REACHED", `a team can have ${maxMembers} members; remove one first`, {
      limit: maxMembers
    })
  }
})

/** Makes a person a member or an owner of a team, whatever they were before. Returns the member. */
export const putMember = Effect.fnUntraced(function* (
  team_id: string,
  who: Who,
  role: Role
): Effect.fn.Return<string, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  return yield* transaction(sql)(
    Effect.gen(function* () {
      yield* hold(team_id)
      const user = yield* userOf(who)
      const [was] = yield* sql<{ role: Role }>`
        select role from memberships where team_id = ${team_id} and user_id = ${user}`
      yield* put(team_id, user, role)
      yield* room(team_id)
      if (was?.role === "owner") yield* ownersStay(team_id)
      return user
    })
  )
})

/** Makes a member of the team, named by id, an owner, or an owner a member. */
export const changeRole = Effect.fnUntraced(function* (
  team_id: string,
  user: string,
  role: Role
): Effect.fn.Return<void, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* transaction(sql)(
    Effect.gen(function* () {
      yield* hold(team_id)
      const changed = yield* sql`
        update memberships set role = ${role} where team_id = ${team_id} and user_id = ${user} returning 1`
      if (changed.length === 0) yield* notFound("member", user)
      yield* ownersStay(team_id)
    })
  )
})

/** Ends a membership; the team keeps at least one owner. */
export const removeMember = Effect.fnUntraced(function* (
  team_id: string,
  user: string
): Effect.fn.Return<void, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* transaction(sql)(
    Effect.gen(function* () {
      yield* hold(team_id)
      const id = user.includes("@") ? yield* findUser(user) : user
      const gone = yield* sql<{ role: Role }>`
        delete from memberships where team_id = ${team_id} and user_id = ${id ?? ""} returning role`
      if (gone.length === 0) yield* notFound("member", user)
      if (gone[0]?.role === "owner") yield* ownersStay(team_id)
      yield* sql`delete from users where id = ${id} and subject is null
        and not exists (select from memberships where user_id = ${id})`
    })
  )
})
