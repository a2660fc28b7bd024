import { isUtf8 } from "node:buffer"
import { escape, unescape } from "node:querystring"
import type { Schema } from "effect"
import { bodyLimits, parseJson } from "@tidegate/model/JsonText"
import { nameNames, valueNames, withoutNamedSecrets } from "./NamedValues.ts"
import { type IsSecretName, secretNames } from "./SecretNames.ts"
import { redacted, withoutSecretLooks } from "./SecretValues.ts"

/** So many encodings around each other are looked into; what is in more is taken for a secret. */
const mostLayers = 6

const base64Token = /[\w+/-]{16,}(?:\r?\n[\w+/-]+)*={0,2}/g
const percentToken = /[^\s"'<>]+/g
const formText = /^[^\s=&<>{"]{1,256}=[^\s&]*(?:&[^\s=&]*(?:=[^\s&]*)?)*$/
/** Too short for a secret that only its look gives away, and nothing is named in it. */
const harmless = /^[\w .-]{0,11}$/
const multipart = /^--[^\s]{1,100}\r?\n/

/** Takes secrets out of values, by what they are called, what they look like, and what is encoded in them. */
export class Redactor {
  readonly isSecret: IsSecretName

  /** `more`: names that are secret beside those that always are. */
  constructor(more: ReadonlyArray<string> = []) {
    this.isSecret = secretNames(more)
  }

  /** What is named so: a secret is masked, whatever it is; that there is none may be seen. */
  named(name: string, value: Schema.Json, layer = 0): Schema.Json {
    return this.isSecret(name) ? masked(value) : this.value(value, layer)
  }

  /** A JSON value; itself when nothing in it is secret. */
  value(value: Schema.Json, layer = 0): Schema.Json {
    if (typeof value === "string") return this.text(value, layer)
    if (typeof value !== "object" || value === null) return value
    if (Array.isArray(value)) return this.#list(value, layer)
    return this.#members(value as Schema.JsonObject, layer)
  }

  #list(items: ReadonlyArray<Schema.Json>, layer: number): Schema.Json {
    let isNamed = false
    const shown = items.map((item) => {
      // Names and values may follow each other: ["Authorization", "Bearer x"].
      const next = isNamed ? masked(item) : this.value(item, layer)
      isNamed = !isNamed && typeof item === "string" && item.length <= 128 && this.isSecret(item)
      return next
    })
    return shown.some((item, index) => item !== items[index]) ? shown : items
  }

  #members(members: Schema.JsonObject, layer: number): Schema.Json {
    const entries = Object.entries(members)
    // {"name": "password", "value": "x"}
    const isNamed = entries.some(
      ([name, value]) =>
        typeof value === "string" && value.length <= 128 && nameNames.test(name) && this.isSecret(value)
    )
    let isChanged = false
    const shown = entries.map(([name, value]) => {
      const nextName = harmless.test(name) ? name : withoutSecretLooks(name)
      const next = isNamed && valueNames.test(name) ? masked(value) : this.named(name, value, layer)
      isChanged ||= next !== value || nextName !== name
      return [nextName, next] as const
    })
    return isChanged ? Object.fromEntries(shown) : members
  }

  /** Any text: JSON, a form, parts of a form, XML, or what people write, and whatever is encoded in it. */
  text(text: string, layer = 0): string {
    if (harmless.test(text)) return text
    if (layer > mostLayers) return redacted
    return (
      this.#asJson(text, layer) ?? this.#asLines(text, layer) ?? this.#asForm(text, layer) ?? this.#prose(text, layer)
    )
  }

  #asJson(text: string, layer: number): string | null {
    if (!/^\s*[[{"]/.test(text)) return null
    const parsed = parseJson(text, { ...bodyLimits, levels: 200 })
    if (parsed.kind !== "json") return null
    const value = parsed.value as Schema.Json
    const next = this.value(value, layer + 1)
    return next === value ? text : JSON.stringify(next)
  }

  /** One JSON value a line. */
  #asLines(text: string, layer: number): string | null {
    if (!/^\s*[[{]/.test(text) || !text.includes("\n")) return null
    const lines: Array<string> = []
    for (const line of text.split("\n")) {
      const next = line.trim() === "" ? line : this.#asJson(line, layer)
      if (next === null) return null
      lines.push(next)
    }
    return lines.join("\n")
  }

  #asForm(text: string, layer: number): string | null {
    if (multipart.test(text)) return this.#parts(text, layer)
    return formText.test(text) ? this.form(text, layer, written) : null
  }

  /** A query or a form; what is not secret in it stays as it was written. */
  form(text: string, layer = 0, write: (value: string) => string = (value) => value): string {
    return text
      .split("&")
      .map((piece) => {
        const equals = piece.indexOf("=")
        const plain = (part: string) => unescape(part.replaceAll("+", " "))
        if (equals < 0) return this.#changed(piece, plain(piece), layer, write)
        const [name, value] = [piece.slice(0, equals), piece.slice(equals + 1)]
        const next = this.isSecret(plain(name))
          ? value === ""
            ? ""
            : write(redacted)
          : this.#changed(value, plain(value), layer, write)
        return `${this.#changed(name, plain(name), layer, write)}=${next}`
      })
      .join("&")
  }

  #changed(written: string, plain: string, layer: number, write: (value: string) => string): string {
    const next = this.text(plain, layer + 1)
    return next === plain ? written : write(next)
  }

  /** The parts of a form that is sent as such; what has no end is a part to the end. */
  #parts(text: string, layer: number): string {
    const boundary = /^--[^\r\n]+/.exec(text)![0]
    return text
      .split(boundary)
      .map((part) => {
        const head = /^\r?\n[^]*?\r?\n\r?\n/.exec(part.slice(0, 16_384))?.[0]
        if (head === undefined) return part.length < 8 ? part : this.#prose(part, layer)
        const name = /\bname="?([^"\r\n;]{1,256})/i.exec(head)?.[1] ?? ""
        const content = part.slice(head.length)
        return withoutSecretLooks(head) + (this.isSecret(name) ? `${redacted}\r\n` : this.text(content, layer + 1))
      })
      .join(boundary)
  }

  #prose(text: string, layer: number): string {
    const plain = withoutSecretLooks(withoutNamedSecrets(text, this.isSecret))
    const decoded = /%[0-9a-f]{2}/i.test(plain)
      ? plain.replace(percentToken, (token) => this.#changed(token, unescape(token), layer, written))
      : plain
    return decoded.replace(base64Token, (token) => this.#base64(token, layer))
  }

  /** A token that may be base64. It is tried as a whole, and by the pieces that a path or line breaks make of it. */
  #base64(token: string, layer: number): string {
    const whole = this.#decoded(token, layer)
    if (whole !== token || !/[/\n]/.test(token)) return whole
    return token.replace(/[^/\r\n]{16,}/g, (piece) => this.#decoded(piece, layer))
  }

  #decoded(token: string, layer: number): string {
    // Compressed: nobody sees what is in it.
    if (/^H4sI[\w+/-]{12}/.test(token)) return redacted
    const isUrl = /[_-]/.test(token)
    const bytes = Buffer.from(token, isUrl ? "base64url" : "base64")
    if (isUtf8(bytes)) {
      const plain = bytes.toString("utf8")
      // oxlint-disable-next-line no-control-regex -- what no text has
      if (!/[\u0000-\u0008\u000e-\u001f]/.test(plain)) {
        const next = this.text(plain, layer + 1)
        return next === plain ? token : Buffer.from(next).toString(isUrl ? "base64url" : "base64")
      }
    }
    // Bytes, perhaps with text in them, or text of two bytes a character: nothing of it is shown if there is a secret.
    const plain = bytes.toString("latin1").replaceAll("\u0000", "")
    return withoutSecretLooks(withoutNamedSecrets(plain, this.isSecret)) === plain ? token : redacted
  }
}

const written = (text: string): string => escape(text.toWellFormed())

const masked = (value: Schema.Json): Schema.Json =>
  value === null || typeof value === "boolean" || value === "" ? value : redacted
