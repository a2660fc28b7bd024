import { expect, layer } from "@effect/vitest"
import { randomBytes } from "node:crypto"
import { Effect, Layer } from "effect"
import { OpenApi } from "effect/http-api"
import { SqlClient } from "effect/sql"
import { KnownProviders } from "@tidegate/channels/KnownProviders"
import { newId } from "@tidegate/model/Ids"
import { type Permission, type Scope, scopesFor } from "@tidegate/model/Permission"
import { resources } from "@tidegate/resources/Resources"
import { createOperation } from "@tidegate/storage/bulk/BulkOperations"
import { createFixture } from "@tidegate/storage/control/Fixtures"
import { createKey } from "@tidegate/storage/teams/ProjectKeys"
import { replaceSecrets } from "@tidegate/storage/teams/ProjectSecrets"
import { hashToken } from "@tidegate/storage/secrets/Secrets"
import { share } from "@tidegate/storage/control/Shares"
import { binsTeam } from "@tidegate/storage/teams/Teams"
import { idOf, makeOldDays, type OldDays, resourcesOf } from "../../storage/test/OldDays.ts"
import { type Table, tables } from "../../storage/src/Tables.ts"
import { Api } from "../src/contract/Api.ts"
import { permissionOf } from "../src/contract/Authorization.ts"
import { grantable } from "../src/contract/RouteKeys.ts"
import { RateLimits } from "../src/RateLimit.ts"
import { SignInSettings } from "../src/SignInSettings.ts"
import { call, layer as server } from "./ControlServer.ts"

/*
 * Every route of the contract, with every kind of credential. Who may call it is what its annotation says, to the letter; and whoever it
 * is, with the ids of another team they find nothing, are told nothing and change nothing. A new route is walked
 * as soon as it is in the contract.
 */

const mine = "tm_near"
const other = "tm_far"

const old: OldDays = {
  now: Date.now(),
  days: 0,
  teams: { [other]: { payload: null, record: null } },
  perDay: 20,
  bodyBytes: 64
}

const provider = JSON.stringify({
  provider_key: "websub",
  definition_key: "entry.added",
  provider_account_id: null,
  inputs: { url: "https://blog.test/feed" },
  schedule: { interval_minutes: 5 },
  auto_fallback: true,
  max_failures: 3,
  restore_after_minutes: 30
})

const keyOf = (team: string) => `gwk_the_key_of_${team}`
const admin = "admin@example.com"

const world = Layer.effectDiscard(
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* makeOldDays(old)
    yield* sql`insert into teams (id, name) values (${mine}, ${mine})`
    yield* sql`insert into sources (id, team_id, name, type, config, created_at, updated_at)
      select ${bin}, team_id, 'bin', type, config, now(), now() from sources where team_id = ${other} limit 1`
    yield* sql`insert into public_bins (source_id, team_id, token_hash, minute, expires_at, claimed_at, created_at)
      values (${bin}, ${other}, ${hashToken("pbn_of_far")}, now(), now(), now(), now())`
    for (const team of [mine, other]) {
      yield* replaceSecrets(team, { api_key: keyOf(team) })
    }
    for (const who of ["owner", "member", "admin"]) {
      yield* sql`insert into users (id, issuer, subject, email, email_verified, name, created_at, updated_at)
        values (${`usr_${who}`}, 'https://issuer.test', ${who}, ${`${who}@example.com`}, true, ${who}, now(), now())`
    }
    yield* sql`insert into workflows (id, team_id, name, source_id, status, version, steps, edges, definition_hash, created_at, updated_at)
      values (${foreign("wfl")}, ${other}, 'theirs', ${foreign("src")}, 'active', 1, '[]', '[]', '', now(), now())`
    const request_id = foreign("req")
    yield* sql`insert into workflow_runs (id, team_id, workflow_id, request_id, source_id, version, status, parts, steps_count, error_message,
        started_at, finished_at, created_at, updated_at)
      values (${foreign("wfr")}, ${other}, ${foreign("wfl")}, ${request_id}, ${foreign("src")}, 1, 'failed', 1, 0, ${other}, now(), now(), now(), now())`
    yield* sql`insert into workflow_steps (id, team_id, run_id, part, steps, previews, created_at)
      values (${newId("wsp_", old.now)}, ${other}, ${foreign("wfr")}, 1, '{}', ${JSON.stringify({ 0: { input: other } })}, now())`
    // A provider source's settings are what its channel is shown by; its name and its records are telltales.
    yield* sql`update sources set name = 'far0000', type = 'PROVIDER', config = jsonb_set(config::jsonb, '{provider}', ${provider}::jsonb)::json
      where id = ${foreign("src")}`
    yield* sql`insert into channels (source_id, team_id, created_at, updated_at) values (${foreign("src")}, ${other}, now(), now())`
    yield* sql`insert into channel_events (id, team_id, source_id, kind, severity, message, created_at, expires_at)
      values (${newId("cev_", old.now)}, ${other}, ${foreign("src")}, 'stopped', 'info', ${other}, now(), now() + interval '1 day')`
    yield* sql`insert into issues (id, team_id, destination_id, error_code, status, count, event_ids, first_seen_at, last_seen_at,
        opened_at, expires_at)
      values (${foreign("iss")}, ${other}, ${foreign("des")}, 'far0000', 'open', 1, '{}', now(), now(), now(), now() + interval '1 day')`
    yield* sql`insert into channel_alerts (id, team_id, source_id, code, status, message, occurrences, first_seen_at, last_seen_at)
      values (${foreign("cal")}, ${other}, ${foreign("src")}, 'channel_stop_failed', 'active', 'far0000', 1, now(), now())`
    yield* sql`insert into channel_metrics values (${other}, ${foreign("src")}, current_date, 'far0000', 1, now() + interval '1 day')`
    yield* sql`insert into source_runs (id, team_id, source_id, status, reason, error_code, scheduled_at, expires_at)
      values (${newId("trun_", old.now)}, ${other}, ${foreign("src")}, 'failed', 'schedule', 'far0000', now(), now() + interval '1 day')`
    const ofOther = { team_id: other, request_id }
    const made = yield* share(
      { ...ofOther, title: null, expiresAt: new Date(old.now + 3_600_000), secretNames: [], includeBody: true },
      (token) => token
    )
    yield* sql`update request_shares set id = ${foreignShare} where id = ${made.id}`
    const fixture = yield* createFixture({ ...ofOther, name: "theirs", description: null })
    yield* sql`update request_fixtures set id = ${foreign("fix")} where id = ${fixture.id}`
    const at = new Date(old.now).toISOString()
    const operation = {
      team_id: other,
      filter: { from: at, to: at },
      rate: null,
      confirmed: true,
      requested_by: null,
      shard: 1
    }
    yield* createOperation({ ...operation, type: "request_bulk_retry", id: foreign("bch") })
    yield* createOperation({ ...operation, type: "event_bulk_retry", id: foreignOfEvents })
    yield* createOperation({ ...operation, type: "workflow_run_bulk_retry", id: foreignOfRuns })
    for (const [who, { granted, scope }] of Object.entries(projectKeys)) {
      const policy = {
        name: who,
        scopes: [scope],
        execute_grants: granted ? grantable : [],
        rate_limit_per_minute: 10_000,
        expires_at: null
      }
      keysOf.set(who, (yield* createKey(mine, policy, null)).api_key)
    }
    yield* createKey(
      other,
      { name: "theirs", scopes: ["control:read"], execute_grants: [], rate_limit_per_minute: 1, expires_at: null },
      null
    )
    yield* sql`update project_api_keys set id = ${foreignKey}, lookup = 'far0000f' where team_id = ${other}`
    yield* sql`insert into provider_accounts (id, team_id, provider_key, name, connection, base_url, created_at, updated_at)
      values (${foreign("pac")}, ${other}, 'far0000', 'far0000', 'api_key', 'https://far0000.example.com', now(), now())`
    yield* sql`insert into users (id, issuer, subject, email, email_verified, name, created_at, updated_at)
      values (${foreign("usr")}, 'https://issuer.test', 'far', 'far0000@example.com', true, 'far0000', now(), now())`
    yield* sql`insert into memberships values (${other}, ${foreign("usr")}, 'owner', now())`
    yield* sql`insert into memberships values (${mine}, 'usr_owner', 'owner', now()), (${mine}, 'usr_member', 'member', now())`
  })
).pipe(
  Layer.provideMerge(server),
  Layer.provide(
    Layer.effect(
      SignInSettings,
      Effect.map(SignInSettings, (settings) => ({ ...settings, siteAdmins: new Set([admin]) }))
    )
  ),
  // No call of an example leaves the process.
  Layer.provide(Layer.succeed(KnownProviders, [])),
  Layer.provide(Layer.succeed(RateLimits, { perKey: 0, failedPerAddress: 1_000_000 })),
  Layer.orDie
)

/** The ids of the other team's things, by their prefix. Of what is not there, one that nobody has. */
const foreign = (prefix: string): string => {
  const records = [
    "req",
    "evt",
    "att",
    "ign",
    "edt",
    "txe",
    "prx",
    "fix",
    "bch",
    "wfl",
    "wfr",
    "usr",
    "pac",
    "iss",
    "cal"
  ]
  const resource = Object.values(resourcesOf(other)).find((id) => id.startsWith(`${prefix}_`))
  if (resource !== undefined) return resource
  return records.includes(prefix) ? `${prefix}_${idOf(old, other, 0, 0)}` : newId(`${prefix}_`, old.now)
}

/** The operation that is about events; the other one is about requests. */
const foreignOfEvents = `bch_${idOf(old, other, 0, 1)}`
const foreignOfRuns = `bch_${idOf(old, other, 0, 2)}`
const foreignShare = `shr_${"fa".repeat(12)}`
const foreignKey = `pak_${"fa".repeat(16)}`

const idPattern = /\b([a-z]{2,3})_[0-9a-z]{26}\b/g
const fill = (text: string): string =>
  text
    .replaceAll(idPattern, (_, prefix: string) => foreign(prefix))
    .replaceAll(/\bshr_[0-9a-f]{24}\b/g, foreignShare)
    .replaceAll(/\bpak_[0-9a-f]{32}\b/g, foreignKey)

/** A bin that the other team has claimed. It is told by its id that it is there, as its URL tells: what it needs is its token. */
const bin = "src_0000000000far0000b1nb1nb1n"
const isOfBin = (path: string): boolean => path.startsWith("/public-bins/")

interface Route {
  readonly name: string
  readonly method: string
  readonly path: string
  readonly permission: Permission
  /** Its example, with the other team's ids. */
  readonly body: unknown
}

// oxlint-disable-next-line typescript/no-explicit-any -- a document is read as it is
const document: any = OpenApi.fromApi(Api)

const routes: ReadonlyArray<Route> = Object.values(Api.groups).flatMap((group) =>
  Object.values(group.endpoints).map((endpoint): Route => {
    const { method, path } = endpoint
    const spec = document.paths[path.replaceAll(/:(\w+)/g, "{$1}")][method.toLowerCase()]
    const example = spec.requestBody?.content["application/json"].example
    const ids = new Map<string, string>(
      // oxlint-disable-next-line typescript/no-explicit-any -- a document is read as it is
      spec.parameters.map(({ example, name }: any) => [name, String(example ?? "")])
    )
    return {
      name: `${method} ${path}`,
      method,
      path: path
        .replaceAll(/:(\w+)/g, (_: string, name: string) => (isOfBin(path) ? bin : fill(ids.get(name) ?? "")))
        .replace(/(?<=\/events\/.*)bch_\w+/, foreignOfEvents)
        .replace(/(?<=\/workflow_runs\/.*)bch_\w+/, foreignOfRuns),
      permission: permissionOf(endpoint),
      body: example === undefined ? undefined : JSON.parse(fill(JSON.stringify(example)))
    }
  })
)

const secured = routes.filter(({ permission }) => permission !== "public")

/** Keys of the team, each with one scope. */
const projectKeys = {
  reader: { scope: "control:read", granted: false },
  editor: { scope: "control:edit", granted: false },
  runner: { scope: "control:execute", granted: true },
  ungranted: { scope: "control:execute", granted: false },
  tunneler: { scope: "tunnel:connect", granted: false }
} as const satisfies Readonly<Record<string, { readonly scope: Scope; readonly granted: boolean }>>
const keysOf = new Map<string, string>()

type ProjectKeyKind = keyof typeof projectKeys
type Who = "key" | "owner" | "member" | "admin" | ProjectKeyKind

const isProjectKey = (who: Who): who is ProjectKeyKind => who in projectKeys

/** A credential of somebody in `mine` that is valid now, whatever the calls before it did. */
const credentialOf = Effect.fnUntraced(function* (who: Who) {
  const sql = yield* SqlClient.SqlClient
  if (isProjectKey(who)) return keysOf.get(who)!
  if (who === "key") {
    yield* sql`update project_secrets set api_key_hash = ${hashToken(keyOf(mine))} where team_id = ${mine}`
    return keyOf(mine)
  }
  const token = `ses_${randomBytes(32).toString("hex")}`
  yield* sql`insert into sessions values (${hashToken(token)}, ${`usr_${who}`}, ${mine}, now(), now() + interval '1 hour')
    on conflict do nothing`
  return token
})

/** The code that somebody is refused with; null: they may. */
const refusedWith = (permission: Permission, who: Who): string | null => {
  if (permission === "public") return null
  if (who === "key") return permission.teamKey ? null : "USER_SESSION_REQUIRED"
  if (isProjectKey(who)) {
    const { granted, scope } = projectKeys[who]
    if (permission.scope === "any") return null
    const needed = scopesFor(permission)
    if (needed.length === 0) return "USER_SESSION_REQUIRED"
    if (needed.some((one) => one !== scope)) return "INSUFFICIENT_SCOPE"
    return scope === "control:execute" && !granted ? "EXECUTE_GRANT_REQUIRED" : null
  }
  const suffices = {
    self: ["member", "owner", "admin"],
    member: ["member", "owner", "admin"],
    owner: ["owner", "admin"]
  }
  return permission.user === "admin"
    ? who === "admin"
      ? null
      : "ROLE_REQUIRED"
    : suffices[permission.user].includes(who)
      ? null
      : "ROLE_REQUIRED"
}

/** All that the other team has. */
const theirs = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const states: Record<string, unknown> = {}
  for (const [name, { team }] of Object.entries<Table>(tables)) {
    if (team === null) continue
    states[name] = yield* sql.unsafe(
      `select count(*)::int as rows, md5(coalesce(string_agg(t::text, '' order by t::text), '')) as hash
        from ${name} t where ${team} = '${other}'`
    )
  }
  return states
})

/** What only the other team's things have in them: its name, its key, and the middle of each of their ids. */
const telltale = [other, keyOf(other), "far0000", foreignShare, foreignKey]

const idsIn = ({ body, path }: Pick<Route, "body" | "path">): ReadonlyArray<string> =>
  `${path} ${JSON.stringify(body) ?? ""}`.match(/\b(?:[a-z]{2,3}_[0-9a-z]{26}|shr_[0-9a-f]{24}|pak_[0-9a-f]{32})\b/g) ??
  []

/** What of the other team an answer tells beyond the ids that it was asked for, or that calls before it were: what was made keeps them. */
const leaked = (answer: unknown, sent: Set<string>, { body, path }: Route): ReadonlyArray<string> => {
  for (const id of idsIn({ body, path })) sent.add(id)
  let told = JSON.stringify(answer)
  for (const id of sent) told = told.replaceAll(id, "")
  return telltale.filter((sign) => told.includes(sign))
}

/** Several at a time: of calls that are refused, none changes what another one is answered. */
const ofEach = <E, R>(of: ReadonlyArray<Route>, work: (route: Route) => Effect.Effect<void, E, R>) =>
  Effect.forEach(of, work, { concurrency: 8, discard: true })

layer(world, { excludeTestServices: true })("Isolation of every route", (it) => {
  it.effect("Every route without a valid credential is answered 401 unless it is public", () =>
    Effect.gen(function* () {
      expect(secured.length).toBeGreaterThan(60)
      const dead = `ses_${"0".repeat(64)}`
      yield* ofEach(secured, ({ body, method, name, path }) =>
        Effect.gen(function* () {
          for (const [key, code] of [
            [null, "UNAUTHENTICATED"],
            ["gwk_nobodys_key_at_all", "INVALID_API_KEY"],
            ["gwp_7Qm2Xc9A_EXAMPLEexampleEXAMPLEexample00002JcXwk", "INVALID_API_KEY"],
            [dead, "SESSION_EXPIRED"]
          ] as const) {
            const answer = yield* call(method, path, { key, body })
            expect([answer.status, answer.body.code], name).toEqual([401, code])
          }
        })
      )
      for (const { body, method, name, path } of routes.filter(({ permission }) => permission === "public")) {
        const answer = yield* call(method, path, { key: null, body })
        expect(["UNAUTHENTICATED", "INVALID_API_KEY", "SESSION_EXPIRED"], name).not.toContain(answer.body.code)
      }
    })
  )

  for (const who of [
    "key",
    "owner",
    "member",
    "admin",
    ...(Object.keys(projectKeys) as Array<ProjectKeyKind>)
  ] as const) {
    it.effect(
      `Every route obeys its permission for a ${who}, finds nothing by another team's ids and changes nothing there`,
      () =>
        Effect.gen(function* () {
          const before = yield* theirs
          const sent = new Set<string>()
          for (const route of secured) {
            const { body, method, name, path, permission } = route
            const answer = yield* call(method, path, { key: yield* credentialOf(who), body })
            const refused = refusedWith(permission, who)
            if (refused === null && isOfBin(path)) {
              expect([answer.status, answer.body.code], name).toEqual([401, "INVALID_BIN_TOKEN"])
            } else if (refused === null) {
              expect([401, 403], `${name}: ${JSON.stringify(answer.body)}`).not.toContain(answer.status)
              expect(answer.status, name).toBeLessThan(500)
              if (idsIn({ path, body: null }).length > 0) expect(answer.status, name).toBe(404)
            } else expect([answer.status, answer.body.code], name).toEqual([403, refused])
            expect(leaked(answer.body, sent, route), name).toEqual([])
          }
          expect(yield* theirs).toEqual(before)
        })
    )
  }

  it.effect("Team of unclaimed bins is closed to everybody who names it", () =>
    Effect.gen(function* () {
      yield* ofEach(secured, ({ body, method, name, path }) =>
        Effect.gen(function* () {
          for (const who of ["key", "owner", "admin"] as const) {
            const headers = { "x-team-id": binsTeam }
            const answer = yield* call(method, path, { key: yield* credentialOf(who), body, headers })
            expect([answer.status, answer.body.code], `${name} by ${who}`).toEqual([403, "TEAM_FORBIDDEN"])
          }
        })
      )
    })
  )

  for (const who of ["key", "owner", "member", "reader"] as const) {
    it.effect(`Every route is closed to a ${who} that names another team or an unknown team`, () =>
      Effect.gen(function* () {
        const before = yield* theirs
        yield* ofEach(secured, ({ body, method, name, path }) =>
          Effect.gen(function* () {
            for (const team of [other, "tm_nowhere"]) {
              const key = yield* credentialOf(who)
              const byHeader = yield* call(method, path, { key, body, headers: { "x-team-id": team } })
              expect([byHeader.status, byHeader.body.code], name).toEqual([403, "TEAM_FORBIDDEN"])
              const byQuery = yield* call(method, `${path}?team_id=${team}`, { key, body })
              expect([byQuery.status, byQuery.body.code], name).toEqual([403, "TEAM_FORBIDDEN"])
            }
          })
        )
        expect(yield* theirs).toEqual(before)
      })
    )
  }

  it.effect("Isolation test names an existing resource of the other team for each kind of path", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const tableOf: Readonly<Record<string, string>> = {
        ...Object.fromEntries(resources.map(({ plural, prefix }) => [prefix.slice(0, -1), plural])),
        wfr: "workflow_runs",
        req: "requests",
        evt: "events",
        ign: "ignored_events",
        txe: "executions",
        fix: "request_fixtures",
        bch: "bulk_operations",
        shr: "request_shares",
        pak: "project_api_keys",
        iss: "issues",
        cal: "channel_alerts"
      }
      const ids = new Set(routes.flatMap(({ path }) => idsIn({ path, body: null })))
      const named = routes.filter(({ path }) => idsIn({ path, body: null }).length > 0)
      console.log(
        `${routes.length} routes, ${secured.length} of them not public; ${named.length} name ${ids.size} things; ` +
          `${secured.length * (4 + 9 + 3 + 4 * 2 * 2)} calls by 17 kinds of credential`
      )
      for (const id of ids) {
        const table = tableOf[id.slice(0, id.indexOf("_"))]
        // An attempt is named by its event and number.
        if (table === undefined) continue
        const rows = yield* sql`select from ${sql(table)} where id = ${id} and team_id = ${other}`
        expect(rows.length, `${id} in ${table}`).toBe(1)
      }
    })
  )
})
