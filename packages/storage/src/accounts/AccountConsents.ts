import { Effect, type Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { ConsentTaken } from "../delivery/DestinationTokens.ts"
import { sealedColumn } from "../secrets/SealedColumn.ts"
import { hashToken, Secrets } from "../secrets/Secrets.ts"

/*
 * Consents to accounts that are under way. One is found by the hash of its state, because the state itself is not stored. Its data
 * is one encrypted object: the account's draft, the proof of the request (PKCE), and later the result.
 */

/** Consents of a team that can be under way at the same time: a new one replaces the oldest. */
const maxUnderWay = 100

/** An account, also one that does not exist before somebody has consented to it. */
interface Owner {
  readonly id: string
  readonly team_id: string
}

const column = (secrets: Secrets["Service"]) => sealedColumn(secrets, "provider_consents", "consent")

/** `begun_by`: the only caller that may end it over the API. */
export const beginAccountConsent = Effect.fnUntraced(function* (
  { id, team_id }: Owner,
  begun_by: string,
  state: string,
  consent: Schema.JsonObject,
  until: Date
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const hash = hashToken(state)
  const sealed = yield* column(yield* Secrets).seal({ id: hash, team_id }, consent)
  yield* sql`
    with surplus as (
      delete from provider_consents where state_hash in (
        select state_hash from provider_consents where team_id = ${team_id} order by expires_at desc offset ${maxUnderWay - 1})
    )
    insert into provider_consents (state_hash, team_id, account_id, begun_by, consent, expires_at)
    values (${hash}, ${team_id}, ${id}, ${begun_by}, ${sealed}, ${until})`
})

/** A consent, whether it is begun, under way or ended. */
export interface AccountConsent {
  readonly account_id: string
  readonly team_id: string
  readonly team_name: string
  readonly begun_by: string
  readonly consent: Schema.JsonObject
}

/** The consent of this state; null: there is none, or it has expired. */
export const accountConsentOf = Effect.fnUntraced(function* (
  state: string,
  now: Date
): Effect.fn.Return<AccountConsent | null, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const hash = hashToken(state)
  const [row] = yield* sql<Omit<AccountConsent, "consent"> & { readonly consent: string | null }>`
    select c.account_id, c.team_id, c.begun_by, c.consent, t.name as team_name
    from provider_consents c join teams t on t.id = c.team_id where c.state_hash = ${hash} and c.expires_at > ${now}`
  if (row === undefined) return null
  return { ...row, consent: yield* column(yield* Secrets).show({ id: hash, team_id: row.team_id }, row.consent) }
})

/** Takes the consent of a state, once; null: there is none, or it has expired. Until then its result can be read by its state. */
export const takeAccountConsent = Effect.fnUntraced(function* (
  { team_id }: Owner,
  state: string,
  now: Date
): Effect.fn.Return<ConsentTaken | null, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const hash = hashToken(state)
  const of = { id: hash, team_id }
  const sealing = column(yield* Secrets)
  const known = sql`state_hash = ${hash} and team_id = ${team_id} and expires_at > ${now}`
  const [row] = yield* sql<{ consent: string | null }>`select consent from provider_consents where ${known}`
  if (row === undefined) return null
  const consent = yield* sealing.show(of, row.consent)
  if ("ended" in consent) return { ended: consent["ended"] as Schema.JsonObject }
  if ("taken" in consent) return "underWay"
  const sealed = yield* sealing.seal(of, Object.assign({}, consent, { taken: true }))
  const taken = yield* sql`
    update provider_consents set consent = ${sealed} where ${known} and consent = ${row.consent} returning 1`
  return taken.length === 0 ? "underWay" : { begun: consent }
})

/** Stores the result of a taken consent; null: it has none, and its state cannot be used again. */
export const settleAccountConsent = Effect.fnUntraced(function* (
  { team_id }: Owner,
  state: string,
  next: Exclude<ConsentTaken, "underWay"> | null
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const hash = hashToken(state)
  const of = { id: hash, team_id }
  if (next === null) {
    yield* sql`delete from provider_consents where state_hash = ${hash} and team_id = ${team_id}`
    return
  }
  const sealing = column(yield* Secrets)
  const [row] = yield* sql<{ consent: string | null }>`
    select consent from provider_consents where state_hash = ${hash} and team_id = ${team_id}`
  if (row === undefined) return
  const { taken: _, ...draft } = yield* sealing.show(of, row.consent)
  const sealed = yield* sealing.seal(of, "begun" in next ? next.begun : { ...draft, ended: next.ended })
  yield* sql`update provider_consents set consent = ${sealed} where state_hash = ${hash} and team_id = ${team_id}`
})
