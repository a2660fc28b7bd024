import { isUtf8 } from "node:buffer"
import { escape, unescape } from "node:querystring"
import type { Schema } from "effect"
import { bodyLimits, parseJson } from "@tidegate/json/JsonText"
import { runToEnd } from "@tidegate/runtime/Resumable"
import { namedSecretsRemoved, nameNames, valueNames } from "./NamedValues.ts"
import { commandSecretsRemoved } from "./Commands.ts"
import { type IsSecretName, secretNames } from "./SecretNames.ts"
import { anyLook, longText, redacted, secretLooksRemoved } from "./SecretValues.ts"
import { secretColumnsRemoved } from "./Tables.ts"

/** Nested encodings that are decoded; content in more of them is treated as a secret. */
const maxLayers = 6
/** Levels, including those in encodings. Deeper values are treated as secrets: readers do not need them, and the search would take long. */
const maxLevels = 256
/** Values between two yields. */
const valuesAtOnce = 64

const base64Token = /[\w+/-]{16,}(?:\r?\n[\w+/-]+)*={0,2}/g
const percentToken = /[^\s"'<>]+/g
const formText = /^[^\s=&<>{"]{1,256}=[^\s&]*(?:&[^\s=&]*(?:=[^\s&]*)?)*$/
/** Too short for a secret that is recognised by its form, and without characters that name a value. */
const harmless = /^[\w .-]{0,11}$/
/**
 * Characters that a text needs to name a value, or to contain an encoded value or a command option. A long word is looked for only
 * from its beginning, which halves the time.
 */
const mayHold = /[:=<%[{"\n]|(?<![\w+/-])[\w+/-]{16}|\s--?[a-zA-Z]/
/** Levels above which the fast check gives up. */
const maxPlainLevels = 32
const multipart = /^--[^\s]{1,100}\r?\n/
/** Length and number of the texts whose result is remembered. */
const remembered = { length: 64, texts: 1_000 }
/**
 * Texts that were searched and contain no secret, although they look as if they named one: headers of answers repeat themselves. By the
 * function that decides about names.
 */
const knownPlain = new WeakMap<IsSecretName, Set<string>>()

/** Resumable work: it yields at least every few milliseconds. */
type Work<A> = Generator<void, A, void>

/** Masks secrets in values, by their names, their form, and their encoded content. */
export class Redactor {
  readonly isSecret: IsSecretName
  readonly #mask: string
  #level = 0
  #seen = 0

  /** `names`: additional secret names, or a function that knows all of them and keeps its cache from one value to the next. */
  constructor(names: ReadonlyArray<string> | IsSecretName = [], mask: string = redacted) {
    this.#mask = mask
    this.isSecret = typeof names === "function" ? names : secretNames(names)
  }

  /** Masks a value whose name is secret, whatever it is. Empty values stay, because they contain nothing. */
  *named(name: string, value: Schema.Json, layer = 0): Work<Schema.Json> {
    return this.isSecret(name) ? masked(value, this.#mask) : yield* this.value(value, layer)
  }

  /** Redacts a JSON value; returns the same object if nothing in it is secret. */
  *value(value: Schema.Json, layer = 0): Work<Schema.Json> {
    if (typeof value === "string") return yield* this.text(value, layer)
    if (typeof value !== "object" || value === null) return value
    if (this.#level >= maxLevels) return this.#mask
    if (++this.#seen % valuesAtOnce === 0) yield
    this.#level++
    const shown = Array.isArray(value)
      ? yield* this.#list(value, layer)
      : yield* this.#members(value as Schema.JsonObject, layer)
    this.#level--
    return shown
  }

  *#list(items: ReadonlyArray<Schema.Json>, layer: number): Work<Schema.Json> {
    let isNamed = false
    let isChanged = false
    const shown: Array<Schema.Json> = []
    for (const item of items) {
      // A list may contain names and values in turn: ["Authorization", "Bearer x"].
      const next = isNamed ? masked(item, this.#mask) : yield* this.value(item, layer)
      isNamed = !isNamed && this.#isSecretText(item)
      isChanged ||= next !== item
      shown.push(next)
    }
    return isChanged ? shown : items
  }

  *#members(members: Schema.JsonObject, layer: number): Work<Schema.Json> {
    const entries = Object.entries(members)
    // {"name": "password", "value": "x"}
    const isNamed = entries.some(([name, value]) => nameNames.test(name) && this.#isSecretText(value))
    let isChanged = false
    const shown: Array<readonly [string, Schema.Json]> = []
    for (const [name, value] of entries) {
      if (shown.length % 64 === 63) yield
      const nextName = harmless.test(name) ? name : yield* secretLooksRemoved(name, this.#mask)
      const next = isNamed && valueNames.test(name) ? masked(value, this.#mask) : yield* this.named(name, value, layer)
      isChanged ||= next !== value || nextName !== name
      shown.push([nextName, next])
    }
    return isChanged ? Object.fromEntries(shown) : members
  }

  /**
   * A fast check for values of a few kilobytes, without pauses: true means that the value contains no secret, which holds for most values and
   * saves the full search. False means nothing. It has its own search for speed: each request and each step that is shown passes it.
   */
  isPlain(value: Schema.Json, level = 0): boolean {
    if (typeof value === "string") return isPlainText(value) || this.#isKnownPlain(value)
    if (typeof value !== "object" || value === null) return true
    if (level >= maxPlainLevels) return false
    if (Array.isArray(value)) {
      return value.every((item: Schema.Json) => !this.#isSecretText(item) && this.isPlain(item, level + 1))
    }
    for (const name of Object.keys(value)) {
      const of = (value as Schema.JsonObject)[name]!
      if (this.isSecret(name) || !isPlainText(name) || !this.isPlain(of, level + 1)) return false
      if (nameNames.test(name) && this.#isSecretText(of)) return false
    }
    return true
  }

  #isKnownPlain(text: string): boolean {
    if (text.length > remembered.length) return false
    let known = knownPlain.get(this.isSecret)
    if (known?.has(text) === true) return true
    if (runToEnd(this.text(text)) !== text) return false
    if (known === undefined) knownPlain.set(this.isSecret, (known = new Set()))
    // Texts such as dates never repeat, so the cache must not grow.
    if (known.size >= remembered.texts) known.clear()
    known.add(text)
    return true
  }

  /** Whether a value is a secret name, which makes another value secret. */
  #isSecretText(value: Schema.Json): boolean {
    return typeof value === "string" && value.length <= 128 && this.isSecret(value)
  }

  /** Redacts any text: JSON, a form, a multipart form, XML or prose, and whatever is encoded in it. */
  *text(text: string, layer = 0): Work<string> {
    if (isPlainText(text)) return text
    if (layer > maxLayers) return this.#mask
    yield
    return (
      (yield* this.#asJson(text, layer)) ??
      (yield* this.#asLines(text, layer)) ??
      (yield* this.#asForm(text, layer)) ??
      (yield* this.#asTable(text, layer)) ??
      (yield* this.#prose(text, layer))
    )
  }

  *#asJson(text: string, layer: number): Work<string | null> {
    if (!/^\s*[[{"]/.test(text)) return null
    const parsed = parseJson(text, { ...bodyLimits, levels: 200 })
    if (parsed.kind !== "json") return null
    const value = parsed.value as Schema.Json
    const next = yield* this.value(value, layer + 1)
    return next === value ? text : JSON.stringify(next)
  }

  /** Text with one JSON value per line. */
  *#asLines(text: string, layer: number): Work<string | null> {
    if (!/^\s*[[{]/.test(text) || !text.includes("\n")) return null
    const lines: Array<string> = []
    for (const line of text.split("\n")) {
      yield
      const next = line.trim() === "" ? line : yield* this.#asJson(line, layer)
      if (next === null) return null
      lines.push(next)
    }
    return lines.join("\n")
  }

  *#asForm(text: string, layer: number): Work<string | null> {
    if (multipart.test(text)) return yield* this.#parts(text, layer)
    return formText.test(text) ? yield* this.form(text, layer, written) : null
  }

  /** A query or a form; parts that are not secret keep their spelling. */
  *form(text: string, layer = 0, write: (value: string) => string = (value) => value): Work<string> {
    const plain = (part: string) => unescape(part.replaceAll("+", " "))
    const pieces: Array<string> = []
    for (const piece of text.split("&")) {
      yield
      const equals = piece.indexOf("=")
      if (equals < 0) {
        pieces.push(yield* this.#changed(piece, plain(piece), layer, write))
        continue
      }
      const [name, value] = [piece.slice(0, equals), piece.slice(equals + 1)]
      const next = this.isSecret(plain(name))
        ? value === ""
          ? ""
          : write(this.#mask)
        : yield* this.#changed(value, plain(value), layer, write)
      pieces.push(`${yield* this.#changed(name, plain(name), layer, write)}=${next}`)
    }
    return pieces.join("&")
  }

  *#changed(written: string, plain: string, layer: number, write: (value: string) => string): Work<string> {
    const next = yield* this.text(plain, layer + 1)
    return next === plain ? written : write(next)
  }

  /** The parts of a multipart form; a part without an end reaches to the end of the text. */
  *#parts(text: string, layer: number): Work<string> {
    const boundary = /^--[^\r\n]+/.exec(text)![0]
    const parts: Array<string> = []
    for (const part of text.split(boundary)) {
      yield
      const head = /^\r?\n[^]*?\r?\n\r?\n/.exec(part.slice(0, 16_384))?.[0]
      if (head === undefined) {
        parts.push(part.length < 8 ? part : yield* this.#prose(part, layer))
        continue
      }
      const name = /\bname="?([^"\r\n;]{1,256})/i.exec(head)?.[1] ?? ""
      const content = part.slice(head.length)
      const shown = this.isSecret(name) ? `${this.#mask}\r\n` : yield* this.text(content, layer + 1)
      parts.push((yield* secretLooksRemoved(head, this.#mask)) + shown)
    }
    return parts.join(boundary)
  }

  /** A table whose first line names a secret column; the rest of it is treated as prose. */
  *#asTable(text: string, layer: number): Work<string | null> {
    const shown = yield* secretColumnsRemoved(text, this.isSecret, this.#mask)
    return shown === null ? null : yield* this.#prose(shown, layer)
  }

  *#prose(text: string, layer: number): Work<string> {
    const plain = yield* this.#plain(text)
    yield
    const decoded = /%[0-9a-f]{2}/i.test(plain)
      ? yield* replaced(plain, percentToken, (token) => this.#changed(token, unescape(token), layer, written))
      : plain
    yield
    return yield* replaced(decoded, base64Token, (token) => this.#base64(token, layer))
  }

  *#plain(text: string): Work<string> {
    const uncommanded = commandSecretsRemoved(text, this.isSecret, this.#mask)
    yield
    const unnamed = yield* namedSecretsRemoved(uncommanded, this.isSecret, this.#mask)
    return yield* secretLooksRemoved(unnamed, this.#mask)
  }

  /** A token that may be base64. It is decoded as a whole, and in the pieces between slashes or line breaks. */
  *#base64(token: string, layer: number): Work<string> {
    const whole = yield* this.#decoded(token, layer)
    if (whole !== token || !/[/\n]/.test(token)) return whole
    return yield* replaced(token, /[^/\r\n]{16,}/g, (piece) => this.#decoded(piece, layer))
  }

  *#decoded(token: string, layer: number): Work<string> {
    // Compressed (gzip): the content is unknown, so it is masked.
    if (/^H4sI[\w+/-]{12}/.test(token)) return this.#mask
    const isUrl = /[_-]/.test(token)
    const bytes = Buffer.from(token, isUrl ? "base64url" : "base64")
    if (isUtf8(bytes)) {
      const plain = bytes.toString("utf8")
      // oxlint-disable-next-line no-control-regex -- what no text has
      if (!/[\u0000-\u0008\u000e-\u001f]/.test(plain)) {
        const next = yield* this.text(plain, layer + 1)
        return next === plain ? token : Buffer.from(next).toString(isUrl ? "base64url" : "base64")
      }
    }
    // Binary data, which may contain text, also in UTF-16: if it contains a secret, all of it is masked.
    yield
    const plain = bytes.toString("latin1").replaceAll("\u0000", "")
    return (yield* this.#plain(plain)) === plain ? token : this.#mask
  }
}

/** Whether a text can neither be nor contain a secret. */
const isPlainText = (text: string): boolean =>
  harmless.test(text) || (text.length <= longText && !mayHold.test(text) && !anyLook.test(text))

/** Replaces each match in a text by the result of `work`. */
function* replaced(text: string, pattern: RegExp, work: (match: string) => Work<string>): Work<string> {
  let kept = ""
  let keptTo = 0
  for (const { 0: match, index } of text.matchAll(pattern)) {
    kept += text.slice(keptTo, index) + (yield* work(match))
    keptTo = index + match.length
    yield
  }
  return keptTo === 0 ? text : kept + text.slice(keptTo)
}

const written = (text: string): string => escape(text.toWellFormed())

const masked = (value: Schema.Json, mask: string): Schema.Json =>
  value === null || typeof value === "boolean" || value === "" ? value : mask
