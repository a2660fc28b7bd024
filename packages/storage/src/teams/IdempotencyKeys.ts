import { randomUUID } from "node:crypto"
import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { type SecretAddress, Secrets } from "../secrets/Secrets.ts"

/*
 * Calls that take effect once, however often they are sent (`Idempotency-Key`): the answer of the first call is kept for a day
 * and returned again. A row is found by its id alone, whichever process gets the call.
 */

const dayMs = 86_400_000

/** Longer than any call takes. After it, a call of a process that died is carried out again. */
const holdMs = 120_000

/**
 * For this long a call that is carried out again makes the same ids, with the time of the first call: so no row is inserted into
 * an old day.
 */
const sameMs = 3_600_000

/** Limits of one team within a day: keys, and bytes of their answers. */
export const maxKeys = 20_000
export const maxBytes = 64 * 1024 * 1024

/** A longer answer is not kept: only its existence is known. */
export const maxAnswer = 4 * 1024 * 1024

const inUse = (message: string) => fail("IDEMPOTENCY_KEY_IN_USE", message)

/** A call with its key. */
export interface KeyedCall {
  /** A hash of the team, the caller and the key. */
  readonly id: string
  readonly team_id: string
  /** A hash of the call: its path and its body. */
  readonly fingerprint: string
}

/** A call to carry out now. `at`: when it first began, perhaps in a process that died. */
export interface Begun {
  readonly kind: "begun"
  readonly hand: string
  readonly at: number
}

/** The earlier answer of a call. */
export interface Answered {
  readonly kind: "answered"
  readonly status: number
  readonly body: string
}

const addressOf = ({ id, team_id }: KeyedCall): SecretAddress => ({
  team_id,
  table: "idempotency_keys",
  column: "answer",
  id
})

/**
 * Begins a call, or returns its earlier answer. Fails while another process carries it out, and when the key was used for a
 * different call.
 */
export const beginCall = Effect.fnUntraced(function* (
  call: KeyedCall
): Effect.fn.Return<Answered | Begun, GatewayError | SqlError.SqlError, Secrets | SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const ms = yield* Clock.currentTimeMillis
  const now = new Date(ms)
  const { fingerprint, id, team_id } = call
  const hand = randomUUID()
  const [begun] = yield* sql<{ at: Date }>`
    insert into idempotency_keys as k (id, team_id, fingerprint, hand, begun_at, held_until, expires_at)
    select ${id}, ${team_id}, ${fingerprint}, ${hand}, ${now}::timestamptz, ${new Date(ms + holdMs)}::timestamptz,
      ${new Date(ms + dayMs)}::timestamptz
    from (
      select count(*) as keys, coalesce(sum(bytes), 0) as bytes from idempotency_keys where team_id = ${team_id} and expires_at > ${now}
    ) held
    where (keys < ${maxKeys} and bytes < ${maxBytes}) or exists (select from idempotency_keys where id = ${id})
    on conflict (id) do update set hand = excluded.hand, held_until = excluded.held_until, expires_at = excluded.expires_at,
      fingerprint = excluded.fingerprint, status = null, answer = null, bytes = 0,
      begun_at = case when k.begun_at > ${new Date(ms - sameMs)} then k.begun_at else excluded.begun_at end
    where k.expires_at <= ${now} or (k.status is null and k.held_until <= ${now} and k.fingerprint = excluded.fingerprint)
    returning begun_at as at`
  if (begun !== undefined) return { kind: "begun", hand, at: begun.at.getTime() }

  const [row] = yield* sql<{ fingerprint: string; status: number | null; answer: string | null }>`
    select fingerprint, status, answer from idempotency_keys where id = ${id} and team_id = ${team_id}`
  if (row === undefined) {
    return yield* fail(
      "TEAM_LIMIT_REACHED",
      `a team has at most ${maxKeys} idempotency keys a day, and ${maxBytes} bytes that they answered`,
      { limit: maxKeys }
    )
  }
  if (row.fingerprint !== fingerprint) {
    return yield* fail(
      "IDEMPOTENCY_KEY_REUSED",
      "the idempotency key was sent with another call or body; take a new key"
    )
  }
  if (row.status === null) return yield* inUse("the call with this idempotency key is under way; repeat it later")
  if (row.answer === null)
    return yield* inUse("the call with this idempotency key is done; its answer was too long to be kept")
  const secrets = yield* Secrets
  // An answer that cannot be decrypted was encrypted with a key that is gone: the call must not be carried out again.
  const body = yield* Effect.catch(secrets.decrypt(addressOf(call), row.answer), () =>
    inUse("the call with this idempotency key is done; its answer can no longer be read")
  )
  return { kind: "answered", status: row.status, body }
})

/** Stores the answer of a call. */
export const keepAnswer = Effect.fnUntraced(function* (
  call: KeyedCall,
  { hand }: Begun,
  status: number,
  body: string | null
): Effect.fn.Return<void, SqlError.SqlError, Secrets | SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const kept = body !== null && Buffer.byteLength(body) <= maxAnswer ? body : null
  const answer = kept === null ? null : yield* secrets.encrypt(addressOf(call), kept)
  yield* sql`
    update idempotency_keys set status = ${status}, answer = ${answer}::text, bytes = ${answer?.length ?? 0}
    where id = ${call.id} and team_id = ${call.team_id} and hand = ${hand}`
})

/** Nothing was done: the key is free again. */
export const forgetCall = Effect.fnUntraced(function* ({ id, team_id }: KeyedCall, { hand }: Begun) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`delete from idempotency_keys where id = ${id} and team_id = ${team_id} and hand = ${hand}`
})

/** It is not known whether the call took effect: it may be sent again at once, and then continues as the call that was begun. */
export const releaseCall = Effect.fnUntraced(function* ({ id, team_id }: KeyedCall, { hand }: Begun) {
  const sql = yield* SqlClient.SqlClient
  const now = new Date(yield* Clock.currentTimeMillis)
  yield* sql`
    update idempotency_keys set held_until = ${now} where id = ${id} and team_id = ${team_id} and hand = ${hand} and status is null`
})
