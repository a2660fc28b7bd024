import { hash, randomFillSync } from "node:crypto"

/**
 * Identifiers: a fixed prefix and 26 lower-case Crockford base32 characters, ULID-shaped: 10 of time (ms), 16 of entropy.
 * Compared byte by byte (collation "C") they sort by creation time. The time in an id determines the day partition of its row.
 */
export const prefixes = {
  source: "src_",
  destination: "des_",
  connection: "web_",
  transformation: "trs_",
  filter: "flt_",
  action: "act_",
  request: "req_",
  event: "evt_",
  attempt: "att_",
  ignoredEvent: "ign_",
  eventData: "edt_",
  execution: "txe_",
  proxyExchange: "prx_",
  bulkOperation: "bch_",
  dataDeletion: "del_",
  feedEntry: "fed_",
  replayMessage: "rpl_",
  fixture: "fix_",
  tunnelSession: "cli_",
  workflow: "wfl_",
  workflowRun: "wfr_",
  workflowStep: "wse_",
  workflowPart: "wsp_",
  workflowTemplate: "wft_",
  stepRetry: "wro_",
  providerAccount: "pac_",
  channelSubscription: "chn_",
  channelEvent: "cev_",
  channelAlert: "cal_",
  alertDelivery: "cad_",
  issue: "iss_",
  sourceRun: "trun_",
  team: "tm_",
  user: "usr_"
} as const

/** Those above, and the prefixes of resources that are declared elsewhere: two or three letters each. */
export type Prefix = `${string}_`

/** Crockford's base32, in lower case. */
export const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
const timeLength = 10

const encodeTime = (ms: number): string => {
  let text = ""
  let rest = ms
  for (let i = 0; i < timeLength; i++) {
    text = alphabet.charAt(rest % 32) + text
    rest = Math.floor(rest / 32)
  }
  return text
}

const codes = Buffer.from(alphabet, "latin1")
/** An id is made here, and becomes one flat string: a sum of characters is flattened each time that it is written to a socket. */
const scratch = Buffer.alloc(40)

/** The prefix, the time, and 80 bits as 16 characters. */
const idOf = (prefix: Prefix, time: string, bytes: Uint8Array, offset: number): string => {
  let to = 0
  for (let i = 0; i < prefix.length; i++) scratch[to++] = prefix.charCodeAt(i)
  for (let i = 0; i < time.length; i++) scratch[to++] = time.charCodeAt(i)
  for (let at = offset; at < offset + 10; at += 5) {
    const high = (bytes[at]! << 12) | (bytes[at + 1]! << 4) | (bytes[at + 2]! >> 4)
    const low = ((bytes[at + 2]! & 15) << 16) | (bytes[at + 3]! << 8) | bytes[at + 4]!
    for (let shift = 15; shift >= 0; shift -= 5) scratch[to++] = codes[(high >> shift) & 31]!
    for (let shift = 15; shift >= 0; shift -= 5) scratch[to++] = codes[(low >> shift) & 31]!
  }
  return scratch.toString("latin1", 0, to)
}

const pool = new Uint8Array(10 * 512)
let poolAt = pool.length
let lastMs = -1
let lastTime = ""
/** The first 40 bits of entropy of the last id. */
let lastHead = 0

/**
 * Gives the ten bytes at `at`, which are random, their place after the id before: if that has the same time, the first 40 bits are
 * those of the id before and 1 to 2^23 more. Nobody can guess an id from its neighbour: 63 bits are new.
 */
const putInOrder = (ms: number, at: number): void => {
  const random = (pool[at + 1]! << 24) | (pool[at + 2]! << 16) | (pool[at + 3]! << 8) | pool[at + 4]!
  const next = lastHead + 1 + (random & 0x7fffff)
  if (ms !== lastMs || next >= 2 ** 40) {
    // A part of the range is left for the ids that follow.
    lastHead = (pool[at]! & 0x7f) * 2 ** 32 + (random >>> 0)
  } else lastHead = next
  pool[at] = Math.floor(lastHead / 2 ** 32)
  const low = lastHead % 2 ** 32
  pool[at + 1] = low >>> 24
  pool[at + 2] = low >>> 16
  pool[at + 3] = low >>> 8
  pool[at + 4] = low
}

/**
 * A new random id with the time `nowMs` (Unix ms). Ids that a process makes one after the other with the same time sort in this
 * order.
 */
export const newId = (prefix: Prefix, nowMs: number): string => {
  if (poolAt === pool.length) {
    randomFillSync(pool)
    poolAt = 0
  }
  putInOrder(nowMs, poolAt)
  if (nowMs !== lastMs) {
    lastMs = nowMs
    lastTime = encodeTime(nowMs)
  }
  const id = idOf(prefix, lastTime, pool, poolAt)
  poolAt += 10
  return id
}

/**
 * The id of the result of `requestId` on `connectionId` (its event, or its ignored event): the request's time, and a hash of
 * both. Repeating the step yields the same id, so the primary key makes routing exactly once.
 */
export const derivedId = (prefix: Prefix, requestId: string, connectionId: string): string => {
  const digest = hash("sha1", `${requestId}/${connectionId}`, "buffer")
  return idOf(prefix, requestId.slice(4, 4 + timeLength), digest, 0)
}

/** An id with a given time, derived from a text: the same text gives the same id. */
export const seededId = (prefix: Prefix, ms: number, text: string): string =>
  idOf(prefix, encodeTime(ms), hash("sha256", `${prefix}${text}`, "buffer"), 0)

/** The id of another record about the same thing: `edt_` for the payload of `req_…`. */
export const sibling = (prefix: Prefix, id: string): string => prefix + id.slice(id.indexOf("_") + 1)

const pattern = /^[a-z]{2,3}_[0-9a-hjkmnp-tv-z]{26}$/

/** Whether `id` has the shape of a generated id with this prefix. */
export const isId = (prefix: Prefix, id: string): boolean => id.startsWith(prefix) && pattern.test(id)

/** The time of an id (Unix ms), or null when it is not a generated id. */
export const idTime = (id: string): number | null => {
  const at = id.indexOf("_") + 1
  if (at === 0 || id.length < at + timeLength) return null
  let ms = 0
  for (let i = at; i < at + timeLength; i++) {
    const digit = alphabet.indexOf(id.charAt(i))
    if (digit < 0) return null
    ms = ms * 32 + digit
  }
  return ms
}

/** The smallest id of that prefix and time: ids of [from, to) are `>= idBound(p, from)` and `< idBound(p, to)`. */
export const idBound = (prefix: Prefix, ms: number): string => prefix + encodeTime(Math.max(0, Math.floor(ms)))
