import { Effect, type Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { type Owner, sealedColumn } from "../secrets/SealedColumn.ts"
import { hashToken, Secrets } from "../secrets/Secrets.ts"

/*
 * The tokens that a destination's actor has obtained from a provider, encrypted; the next owner of the actor continues with
 * them. A process asks a provider only with a claim, which is in one row and ends by the database's clock. So two owners of a
 * shard, one of which does not know yet that it has lost it, cannot both use one refresh token.
 */

/** The tokens of a destination; empty if they cannot be decrypted: then new ones are obtained. */
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

/**
 * Takes the claim on a destination's tokens for this time; returns the current tokens. Null: another process has the claim, or
 * the destination is gone.
 */
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

/** Stores new tokens and releases the claim; false: another process has the claim by now, and nothing was stored. */
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

/**
 * Stores the data of a started consent, and replaces an earlier one. It is found by a hash of its state, because the state
 * itself is not stored.
 */
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

/** The owner of a consent. */
export interface ConsentFor extends Owner {
  readonly name: string
  readonly type: string
  readonly team_name: string
}

/** The owner whose consent waits for this state; null: there is none. */
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

/** The state of a consent. */
export type ConsentTaken =
  /** The data that it was started with: only the caller that gets it may end it. */
  | { readonly begun: Schema.JsonObject }
  /** Its result. */
  | { readonly ended: Schema.JsonObject }
  /** Another process is ending it, or has crashed meanwhile. */
  | "underWay"

/**
 * Takes the consent of a state, once; null: there is none, or it has expired. Until then its result can be read by its state.
 */
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

/** Stores the result of a taken consent; null: it has none, and its state cannot be used again. */
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
