import { BrokerRefusal, type NatsServer } from "@tidegate/connectors/Brokers"
import { parseJson } from "@tidegate/json/JsonText"
import { natsKey } from "./NatsKey.ts"
import { ServerFault } from "./ServerFrames.ts"

/** What the lines of a NATS server say, as far as a publisher to streams needs them. */

/** The greeting lists the servers of a cluster. */
export const longestLine = 32 * 1024
/** A confirmation has about a hundred bytes. */
const longestBody = 16 * 1024
const longestNonce = 256
/** For a server that does not say how large a message may be: its own default. */
const usualLargest = 1024 * 1024

const words: ReadonlySet<string> = new Set(["INFO", "MSG", "HMSG", "PING", "PONG", "+OK", "-ERR"])

interface MessageLine {
  readonly subject: string
  /** Bytes of its headers. */
  readonly head: number
  readonly size: number
}

const messageLine = (line: string): MessageLine | null => {
  const [word, subject = "", , ...rest] = line.split(/[ \t]+/)
  const hasHead = word?.toUpperCase() === "HMSG"
  const numbers = rest.slice(hasHead ? -2 : -1)
  if (numbers.length !== (hasHead ? 2 : 1) || !numbers.every((number) => /^\d{1,10}$/.test(number))) return null
  const [head, size] = hasHead ? numbers.map(Number) : [0, Number(numbers[0])]
  return head! > size! ? null : { subject, head: head!, size: size! }
}

/** How many bytes follow a line: only messages have any, and they come after the sign-in. */
export const followingIn = (line: string, isSignedIn: boolean): number | null => {
  const word = line.split(/[ \t]/, 1)[0]!.toUpperCase()
  if (!words.has(word)) throw new ServerFault("PROTOCOL_ERROR", "the server does not speak as NATS does")
  if (word !== "MSG" && word !== "HMSG") return null
  const read = isSignedIn ? messageLine(line) : null
  if (read === null) throw new ServerFault("PROTOCOL_ERROR", "the server sends a message that nobody has asked for")
  if (read.size > longestBody) {
    throw new ServerFault("RESPONSE_TOO_LARGE", "the server sends a message that is too long")
  }
  return read.size
}

/** A message: its status is in its headers. */
export const messageIn = (
  line: string,
  body: Buffer
): { readonly subject: string; readonly status: string | null; readonly content: Buffer } => {
  const { head, subject } = messageLine(line)!
  const status = /^NATS\/1\.0 (\d{3})/.exec(body.toString("latin1", 0, Math.min(head, 64)))?.[1] ?? null
  return { subject, status, content: body.subarray(head) }
}

type Members = Readonly<Record<string, unknown>>

const membersOf = (json: Uint8Array | string): Members | null => {
  const parsed = parseJson(json)
  return parsed.kind === "json" && typeof parsed.value === "object" && parsed.value !== null
    ? (parsed.value as Members)
    : null
}

export interface Greeting {
  readonly hasHeaders: boolean
  /** Whether the server speaks TLS, and whether it insists on it. */
  readonly hasTls: boolean
  readonly needsTls: boolean
  /** Bytes of a message. */
  readonly largest: number
  /** What a key has to sign; empty: nothing. */
  readonly nonce: string
}

export const greetingIn = (line: string): Greeting => {
  const told = membersOf(line.slice("INFO".length))
  if (told === null) throw new ServerFault("PROTOCOL_ERROR", "the server does not greet as NATS does")
  const { headers, max_payload, nonce, tls_available, tls_required } = told
  return {
    hasHeaders: headers === true,
    hasTls: tls_required === true || tls_available === true,
    needsTls: tls_required === true,
    largest: typeof max_payload === "number" && max_payload > 0 ? max_payload : usualLargest,
    nonce: typeof nonce === "string" ? nonce.slice(0, longestNonce) : ""
  }
}

/** The destination's part of the sign-in. */
export const signInTo = (place: NatsServer, nonce: string): string => {
  const { jwt, password, seed, tls, token, username } = place
  const key = seed === "" ? null : natsKey(seed)
  return JSON.stringify({
    verbose: false,
    pedantic: false,
    tls_required: tls,
    name: "tidegate",
    lang: "node",
    version: "1",
    protocol: 1,
    headers: true,
    no_responders: true,
    echo: false,
    ...(username === "" ? {} : { user: username, pass: password }),
    ...(token === "" ? {} : { auth_token: token }),
    ...(key === null ? {} : { ...(jwt === "" ? { nkey: key.name } : { jwt }), sig: key.signed(nonce) })
  })
}

/** What a stream calls the message: its own name, the number, and whether it had it already. Or why it has not taken it. */
export const confirmationIn = (content: Buffer): string | BrokerRefusal => {
  const told = membersOf(content)
  const error = told?.["error"]
  if (typeof error === "object" && error !== null) {
    const { code, description, err_code } = error as Members
    const number = typeof err_code === "number" ? err_code : code
    return new BrokerRefusal({
      code: typeof number === "number" ? String(number) : "ERR",
      said: typeof description === "string" ? description : "",
      shared: false
    })
  }
  const { duplicate, seq, stream } = told ?? {}
  return typeof stream === "string" && /^\S{1,255}$/.test(stream) && typeof seq === "number"
    ? `${stream} ${seq}${duplicate === true ? " duplicate" : ""}`
    : new BrokerRefusal({ code: "NO_STREAM", said: "", shared: false })
}

const codes: ReadonlyArray<readonly [said: RegExp, code: string]> = [
  [/^permissions violation/i, "PERMISSIONS"],
  [/^maximum payload/i, "PAYLOAD"],
  [/authori[sz]ation|authentication/i, "AUTHORIZATION"]
]

/** An error of the server, and the subject that it is about. */
export const errorIn = (
  line: string
): { readonly code: string; readonly said: string; readonly subject: string | null } => {
  const said = line.slice("-ERR".length).trim().replaceAll(/^'|'$/g, "")
  const [, code = "ERR"] = codes.find(([form]) => form.test(said)) ?? []
  const [, subject = null] = /^permissions violation for publish to "([^"]*)"/i.exec(said) ?? []
  return { code, said, subject }
}
