import { promisify } from "node:util"
import { randomBytes, scrypt } from "node:crypto"
import { Effect } from "effect"
import { decodedApart } from "@tidegate/model/ContentCoding"

/* A text that is looked for in stored data: the forms in which it may stand there, and its hash. */

const inJson = (text: string): string => JSON.stringify(text).slice(1, -1)

const escaped = (text: string, hex: (code: string) => string): string =>
  text.replaceAll(/[\u0080-\uffff]/g, (unit) => `\\u${hex(unit.charCodeAt(0).toString(16).padStart(4, "0"))}`)

const percented = (text: string): string =>
  encodeURIComponent(text.toWellFormed()).replaceAll(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`
  )

const lowerHex = (text: string): string => text.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase())

/**
 * The forms of a text: as it is, in JSON (also in JSON in JSON, with `\\u` for what is not ASCII, and with `\\/`), and in URLs and
 * forms. Most texts have few.
 */
export const formsOf = (text: string): ReadonlyArray<string> => {
  const json = inJson(text)
  const url = percented(text)
  const form = url.replaceAll("%20", "+")
  const plainAt = url.replaceAll("%40", "@")
  return [
    ...new Set([
      text,
      json,
      inJson(json),
      json.replaceAll("/", "\\/"),
      escaped(json, (code) => code),
      escaped(json, (code) => code.toUpperCase()),
      inJson(escaped(json, (code) => code)),
      url,
      lowerHex(url),
      plainAt,
      lowerHex(plainAt),
      form,
      lowerHex(form)
    ])
  ]
}

const hashing = promisify<string, Buffer, number, Buffer>(scrypt)

/** The hash that the proof contains in place of the text. It is slow to compute, so that nobody can try all addresses. */
export const hashOfText = (text: string): Effect.Effect<string> =>
  Effect.map(
    Effect.suspend(() => {
      const salt = randomBytes(16)
      return Effect.map(
        Effect.promise(() => hashing(text, salt, 32)),
        (hash) => [salt, hash] as const
      )
    }),
    ([salt, hash]) => `scrypt:${salt.toString("hex")}:${hash.toString("hex")}`
  )

/** The largest decompressed body that is looked through, and how much of it at once: the event loop is held for a millisecond or two. */
const maxDecoded = 64 * 1024 * 1024
const sliceBytes = 512 * 1024

/**
 * Whether one of the forms is in a body that a sender or a target has compressed. Null: it cannot be decompressed.
 */
export const isInCoded = Effect.fnUntraced(function* (
  body: Buffer,
  coding: string | ReadonlyArray<string> | undefined,
  forms: ReadonlyArray<Buffer>
) {
  const plain = yield* Effect.promise(() => decodedApart(body, coding, maxDecoded))
  if (plain === null || plain === "too large") return null
  const overlap = Math.max(...forms.map(({ length }) => length))
  for (let at = 0; at < plain.length; at += sliceBytes) {
    const slice = plain.subarray(at, at + sliceBytes + overlap)
    if (forms.some((form) => slice.includes(form))) return true
    yield* Effect.yieldNow
  }
  return false
})
