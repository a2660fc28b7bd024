import { createHash, createHmac, randomUUID, timingSafeEqual } from "node:crypto"
import type { LogLine, LogType } from "../Call.ts"
import { callLimits } from "../CallLimits.ts"
import type { Ask } from "./Guest.ts"

/** Characters that one question may bring along: what is computed here does not count against the isolate's memory. */
const maxTextLength = 16 * 1_048_576

const hashes: ReadonlySet<string> = new Set(["md5", "sha1", "sha256", "sha384", "sha512"])
const logTypes: ReadonlySet<string> = new Set<LogType>(["debug", "log", "info", "warn", "error"])
const urlParts = [
  "href",
  "protocol",
  "username",
  "password",
  "host",
  "hostname",
  "port",
  "pathname",
  "search",
  "hash"
] as const

const isLogType = (type: string): type is LogType => logTypes.has(type)
const hashNamed = (name: string): string => {
  const algorithm = name.toLowerCase().replace("-", "")
  if (!hashes.has(algorithm))
    throw new TypeError(`crypto: no hash ${name.slice(0, 32)}, only ${[...hashes].join(", ")}`)
  return algorithm
}
const encodingNamed = (name: string): "hex" | "base64" | "base64url" => {
  if (name === "hex" || name === "base64" || name === "base64url") return name
  throw new TypeError(`crypto: no encoding ${name.slice(0, 32)}, only hex, base64, base64url`)
}
const bytesOf = (encoding: string, text: string): Buffer => Buffer.from(text, encoding === "base64" ? "base64" : "utf8")
const urlPart = (name: string) => urlParts.find((part) => part === name)

type Answering = (...texts: ReadonlyArray<string>) => string

/** What needs more than the language: each takes texts and gives a text, and keeps nothing. */
const operations: Readonly<Record<string, Answering>> = {
  atob: (data = "") => atob(data),
  btoa: (data = "") => btoa(data),
  encode: (data = "") => Buffer.from(data, "utf8").toString("base64"),
  encoding: (label = "") => new TextDecoder(label).encoding,
  decode: (label = "", fatal = "", ignoreBOM = "", base64 = "") =>
    new TextDecoder(label, { fatal: fatal === "1", ignoreBOM: ignoreBOM === "1" }).decode(
      Buffer.from(base64, "base64")
    ),
  hash: (algorithm = "", encoding = "", as = "", data = "") =>
    createHash(hashNamed(algorithm)).update(bytesOf(as, data)).digest(encodingNamed(encoding)),
  hmac: (algorithm = "", encoding = "", keyAs = "", key = "", as = "", data = "") =>
    createHmac(hashNamed(algorithm), bytesOf(keyAs, key)).update(bytesOf(as, data)).digest(encodingNamed(encoding)),
  // Hashed first: the comparison is then of equal lengths, and says nothing about where or how they differ.
  equal: (leftAs = "", left = "", rightAs = "", right = "") => {
    const digest = (as: string, text: string) => createHash("sha256").update(bytesOf(as, text)).digest()
    return timingSafeEqual(digest(leftAs, left), digest(rightAs, right)) ? "1" : ""
  },
  uuid: () => randomUUID(),
  url: (url = "", base) => new URL(url, base).href,
  "url.get": (href = "", part = "") => {
    const url = new URL(href)
    return part === "origin" ? url.origin : url[urlPart(part) ?? "href"]
  },
  "url.set": (href = "", part = "", value = "") => {
    const url = new URL(href)
    url[urlPart(part) ?? "href"] = value
    return url.href
  },
  "query.parse": (query = "") => JSON.stringify([...new URLSearchParams(query)]),
  "query.format": (pairs = "") => new URLSearchParams(JSON.parse(pairs)).toString()
}

/** At most `bytes` bytes of UTF-8, cut between characters. */
export const cut = (text: string, bytes: number): string => {
  // A character is at most three bytes for each unit of its length.
  if (text.length * 3 <= bytes || Buffer.byteLength(text) <= bytes) return text
  const buffer = Buffer.from(text.slice(0, bytes))
  let end = Math.min(bytes, buffer.length)
  while (end > 0 && ((buffer[end] ?? 0) & 0xc0) === 0x80) end--
  return buffer.toString("utf8", 0, end)
}

export interface Host {
  /** What the guest of one call calls. It has no state but the log of that call. */
  readonly ask: Ask
  /** What was logged since it was last taken, with remarks on what was left out. */
  readonly takeLogs: () => { readonly logs: ReadonlyArray<LogLine>; readonly warnings: ReadonlyArray<string> }
}

export const makeHost = (): Host => {
  let logs: Array<LogLine> = []
  let isFull = false
  let isCut = false

  const log = (type: string, message: string): void => {
    if (logs.length >= callLimits.logLines) {
      isFull = true
      return
    }
    const kept = cut(message.toWellFormed(), callLimits.logLineBytes)
    if (kept.length < message.length) isCut = true
    logs.push({ type: isLogType(type) ? type : "log", message: kept })
  }

  return {
    ask: (operation, ...texts) => {
      // It is called by code of strangers: what is not a text is not looked at.
      if (typeof operation !== "string" || !texts.every((text) => typeof text === "string")) return "!texts only"
      if (operation === "log") {
        log(texts[0] ?? "", texts[1] ?? "")
        return "="
      }
      const answer = Object.hasOwn(operations, operation) ? operations[operation] : undefined
      if (answer === undefined) return "!no such operation"
      if (texts.some((text) => text.length > maxTextLength)) return "!the text is too long"
      try {
        return `=${answer(...texts)}`
      } catch (error) {
        return `!${error instanceof Error ? error.message : "failed"}`
      }
    },
    takeLogs: () => {
      const warnings = [
        ...(isFull ? [`only the first ${callLimits.logLines} log lines are kept`] : []),
        ...(isCut ? [`log lines longer than ${callLimits.logLineBytes} bytes are cut`] : [])
      ]
      const taken = { logs, warnings }
      logs = []
      isFull = false
      isCut = false
      return taken
    }
  }
}
