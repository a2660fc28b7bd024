import { Effect, type Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { type Owner, sealedColumn } from "../secrets/SealedColumn.ts"
import { hashToken, Secrets } from "../secrets/Secrets.ts"

/*
 * What a destination's actor has obtained from a provider of tokens, sealed: whoever takes the actor over goes on with it. Nobody asks a
 * provider without a claim, which is one row's and ends by the database's clock: two owners of a shard, of which one does not know yet
 * that it is none, must not use up one refresh token both.
 */

/** What a destination holds; empty when that cannot be read: then it is obtained anew. */
type Held = Schema.JsonObject

export const readTokens = Effect.fnUntraced(function* (
  owner: Owner
): Effect.fn.Return<Held, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const [row] = yield* sql<{ held: string | null }>`
    select held from destination_tokens where destination_id = ${owner.id}`
  return yield* sealedColumn(secrets, "destination_tokens", "held").show(owner, row?.held ?? null)
})

/** Takes the claim on a destination's tokens for so long; answers with what is held by then. Null: it is somebody else's, or the destination is gone. */
export const claimTokens = Effect.fnUntraced(function* (
  owner: Owner,
  claim: string,
  forMs: number
): Effect.fn.Return<Held | null, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const until = sql`clock_timestamp() + make_interval(secs => ${forMs / 1_000}::float8)`
  const [row] = yield* sql<{ held: string | null }>`
    insert into destination_tokens as t (destination_id, team_id, claim, claimed_until)
    select id, team_id, ${claim}, ${until} from destinations
    where id = ${owner.id} and team_id = ${owner.team_id} and deleted_at is null for share
    on conflict (destination_id) do update set claim = excluded.claim, claimed_until = excluded.claimed_until
    where t.claim is null or t.claim = excluded.claim or t.claimed_until <= clock_timestamp()
    returning held`
  return row === undefined ? null : yield* sealedColumn(secrets, "destination_tokens", "held").show(owner, row.held)
})

/** Stores what is held from now on and gives the claim back; false: the claim is somebody else's by now, and nothing was stored. */
export const storeTokens = Effect.fnUntraced(function* (
  owner: Owner,
  claim: string,
  held: Held
): Effect.fn.Return<boolean, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const sealed = yield* sealedColumn(yield* Secrets, "destination_tokens", "held").seal(owner, held)
  const rows = yield* sql`
    update destination_tokens set held = ${sealed}, claim = null, claimed_until = null
    where destination_id = ${owner.id} and claim = ${claim} returning 1`
  return rows.length > 0
})

/** Stores what a consent is begun with, in the place of one that was begun before. It is found by its state, which is not stored. */
export const beginConsent = Effect.fnUntraced(function* (
  owner: Owner,
  state: string,
  consent: Schema.JsonObject,
  until: Date
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const sealed = yield* sealedColumn(yield* Secrets, "destination_tokens", "consent").seal(owner, consent)
  yield* sql`
    insert into destination_tokens (destination_id, team_id, consent, state_hash, consent_until)
    select id, team_id, ${sealed}, ${hashToken(state)}, ${until}::timestamptz from destinations
    where id = ${owner.id} and team_id = ${owner.team_id} and deleted_at is null for share
    on conflict (destination_id) do update
    set consent = excluded.consent, state_hash = excluded.state_hash, consent_until = excluded.consent_until`
})

/** Whom somebody consents for. */
export interface ConsentFor extends Owner {
  readonly name: string
  readonly type: string
  readonly team_name: string
}

/** Whose consent waits for this state; null: nobody's. */
export const awaitedBy = Effect.fnUntraced(function* (
  destinationId: string,
  state: string,
  now: Date
): Effect.fn.Return<ConsentFor | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<ConsentFor>`
    select d.id, d.team_id, d.name, d.type, teams.name as team_name
    from destination_tokens t join destinations d on d.id = t.destination_id join teams on teams.id = t.team_id
    where t.destination_id = ${destinationId} and t.state_hash = ${hashToken(state)} and t.consent_until > ${now}`
  return row ?? null
})

/** What has become of the consent of a state. */
export type ConsentTaken =
  /** What it was begun with: whoever is told so ends it, and nobody else. */
  | { readonly begun: Schema.JsonObject }
  /** What it has led to. */
  | { readonly ended: Schema.JsonObject }
  /** Somebody ends it just now, or has died of it. */
  | "underWay"

/** Takes the consent of a state, once; null: there is none, or its time is over. What it leads to is known by its state until then. */
export const takeConsent = Effect.fnUntraced(function* (
  owner: Owner,
  state: string,
  now: Date
): Effect.fn.Return<ConsentTaken | null, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const column = sealedColumn(yield* Secrets, "destination_tokens", "consent")
  const known = sql`destination_id = ${owner.id} and team_id = ${owner.team_id} and state_hash = ${hashToken(state)}
    and consent_until > ${now}`
  const [row] = yield* sql<{ consent: string | null }>`select consent from destination_tokens where ${known}`
  if (row === undefined) return null
  if (row.consent === null) return "underWay"
  const consent = yield* column.show(owner, row.consent)
  if ("ended" in consent) return { ended: consent["ended"] as Schema.JsonObject }
  const taken = yield* sql`
    update destination_tokens set consent = null where ${known} and consent = ${row.consent} returning 1`
  if (taken.length === 0) return "underWay"
  return Object.keys(consent).length === 0 ? null : { begun: consent }
})

/** Stores what has become of a consent that was taken; null: nothing, and its state is used up. */
export const settleConsent = Effect.fnUntraced(function* (
  owner: Owner,
  state: string,
  next: Exclude<ConsentTaken, "underWay"> | null
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const mine = sql`destination_id = ${owner.id} and state_hash = ${hashToken(state)} and consent is null`
  if (next === null) {
    yield* sql`update destination_tokens set state_hash = null, consent_until = null where ${mine}`
  } else {
    const consent = "begun" in next ? next.begun : next
    const sealed = yield* sealedColumn(yield* Secrets, "destination_tokens", "consent").seal(owner, consent)
    yield* sql`update destination_tokens set consent = ${sealed} where ${mine}`
  }
})
