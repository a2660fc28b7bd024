import { createHash, createHmac, randomBytes, randomUUID, timingSafeEqual } from "node:crypto"
import type { LogLine, LogType } from "../Call.ts"
import { callLimits } from "../CallLimits.ts"
import type { Ask } from "./Guest.ts"

/** Characters that one question may contain: work done in the host does not count against the isolate's memory. */
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

/** Operations that the language lacks. Each takes texts, returns a text, and keeps no state. */
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
  // Both sides are hashed first: the compared values then have equal lengths, and the time does not show where they differ.
  equal: (leftAs = "", left = "", rightAs = "", right = "") => {
    const digest = (as: string, text: string) => createHash("sha256").update(bytesOf(as, text)).digest()
    return timingSafeEqual(digest(leftAs, left), digest(rightAs, right)) ? "1" : ""
  },
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

/** Returns at most `bytes` UTF-8 bytes, cut between characters. */
export const cut = (text: string, bytes: number): string => {
  // A character is at most three bytes for each UTF-16 unit.
  if (text.length * 3 <= bytes || Buffer.byteLength(text) <= bytes) return text
  const buffer = Buffer.from(text.slice(0, bytes))
  let end = Math.min(bytes, buffer.length)
  while (end > 0 && ((buffer[end] ?? 0) & 0xc0) === 0x80) end--
  return buffer.toString("utf8", 0, end)
}

/** The inputs of one call that differ from call to call. */
export interface Inputs {
  /** Seed of the call's random numbers and ids, in unguessable hexadecimal digits. "" if they need not be repeatable. */
  readonly seed: string
  /** `live`, `recorded`, or the tape to replay (Sources.ts). */
  readonly clock: string
}

export const newSeed = (): string => randomBytes(32).toString("hex")

/** A version 4 UUID; the same seed gives the same one. Without the seed it cannot be told from a random one. */
const uuidOf = (seed: string, index: number): string => {
  const digest = createHmac("sha256", seed).update(String(index)).digest()
  digest[6] = ((digest[6] ?? 0) & 0x0f) | 0x40
  digest[8] = ((digest[8] ?? 0) & 0x3f) | 0x80
  const hex = digest.toString("hex", 0, 16)
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-")
}

export interface Host {
  /** Called by the guest. Its state belongs to one call: the log, and the random values drawn so far. */
  readonly ask: Ask
  /** Begins the next call and returns its name. Questions of earlier calls are ignored from here on. */
  readonly begin: (inputs: Inputs) => string
  /** Ends the call. Returns its log, warnings about dropped lines, and the clock readings if they were recorded. */
  readonly end: () => {
    readonly logs: ReadonlyArray<LogLine>
    readonly warnings: ReadonlyArray<string>
    readonly tape: string
  }
}

const nobody = { seed: "", clock: "live" }

export const makeHost = (): Host => {
  let inputs: Inputs = nobody
  let calls = 0
  /** Name of the running call; empty between calls. */
  let current = ""
  let uuids = 0
  let tape = ""
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

  /** Values that differ in each call: random numbers, ids and time. */
  const draw = (operation: string, [text = ""]: ReadonlyArray<string>): string | null => {
    if (operation === "uuid") return inputs.seed === "" ? randomUUID() : uuidOf(inputs.seed, uuids++)
    if (operation === "seed") return inputs.seed === "" ? newSeed() : inputs.seed
    if (operation === "clock") return inputs.clock
    if (operation !== "tape") return null
    tape = text.slice(0, maxTextLength)
    return ""
  }

  return {
    ask: (operation, ...texts) => {
      // Untrusted code calls it, so arguments that are not texts are refused.
      if (typeof operation !== "string" || !texts.every((text) => typeof text === "string")) return "!texts only"
      if (operation === "log") {
        if (texts[0] !== current || current === "") return "!the call is over"
        log(texts[1] ?? "", texts[2] ?? "")
        return "="
      }
      const drawn = draw(operation, texts)
      if (drawn !== null) return `=${drawn}`
      const answer = Object.hasOwn(operations, operation) ? operations[operation] : undefined
      if (answer === undefined) return "!no such operation"
      if (texts.some((text) => text.length > maxTextLength)) return "!the text is too long"
      try {
        return `=${answer(...texts)}`
      } catch (error) {
        return `!${error instanceof Error ? error.message : "failed"}`
      }
    },
    begin: (given) => {
      inputs = given
      current = String(++calls)
      return current
    },
    end: () => {
      const warnings = [
        ...(isFull ? [`only the first ${callLimits.logLines} log lines are kept`] : []),
        ...(isCut ? [`log lines longer than ${callLimits.logLineBytes} bytes are cut`] : [])
      ]
      const ended = { logs, warnings, tape }
      inputs = nobody
      current = ""
      uuids = 0
      tape = ""
      logs = []
      isFull = false
      isCut = false
      return ended
    }
  }
}
