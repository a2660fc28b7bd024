import { BrokerRefusal, type NatsServer } from "@tidegate/connectors/Brokers"
import { parseJson } from "@tidegate/json/JsonText"
import { longestValue, mostHeaders } from "./Consumer.ts"
import { natsKey } from "./NatsKey.ts"
import { ServerFault } from "./ServerFrames.ts"

/** What the lines of a NATS server say, as far as publishers to streams and their consumers need them. */

/** The greeting lists the servers of a cluster. */
export const longestLine = 32 * 1024
const longestNonce = 256
/** For a server that does not say how large a message may be: its own default. */
const usualLargest = 1024 * 1024

const words: ReadonlySet<string> = new Set(["INFO", "MSG", "HMSG", "PING", "PONG", "+OK", "-ERR"])

interface MessageLine {
  readonly subject: string
  /** Where it is to be answered; empty: nowhere. */
  readonly reply: string
  /** Bytes of its headers. */
  readonly head: number
  /** Bytes of all of it. */
  readonly size: number
}

const messageLine = (line: string): MessageLine | null => {
  const [word, subject = "", , ...rest] = line.split(/[ \t]+/)
  const hasHead = word?.toUpperCase() === "HMSG"
  const numbers = rest.slice(hasHead ? -2 : -1)
  const [reply = ""] = rest.slice(0, -numbers.length)
  if (numbers.length !== (hasHead ? 2 : 1) || !numbers.every((number) => /^\d{1,10}$/.test(number))) return null
  const [head, size] = hasHead ? numbers.map(Number) : [0, Number(numbers[0])]
  return head! > size! ? null : { subject, reply, head: head!, size: size! }
}

/** How many bytes follow a line, at most `longest`: only messages have any, and they come after the sign-in. */
export const followingIn = (line: string, isSignedIn: boolean, longest: number): number | null => {
  const word = line.split(/[ \t]/, 1)[0]!.toUpperCase()
  if (!words.has(word)) throw new ServerFault("PROTOCOL_ERROR", "the server does not speak as NATS does")
  if (word !== "MSG" && word !== "HMSG") return null
  const read = isSignedIn ? messageLine(line) : null
  if (read === null) throw new ServerFault("PROTOCOL_ERROR", "the server sends a message that nobody has asked for")
  if (read.size > longest) {
    throw new ServerFault("RESPONSE_TOO_LARGE", "the server sends a message that is too long")
  }
  return read.size
}

export interface NatsReceived extends Omit<MessageLine, "head"> {
  /** Null: the message has no status, because somebody has published it. */
  readonly status: string | null
  /** What is said of the status. */
  readonly said: string
  readonly head: Buffer
  readonly content: Buffer
}

/** A message: its status is in its headers. */
export const messageIn = (line: string, body: Buffer): NatsReceived => {
  const { head, ...rest } = messageLine(line)!
  const [, status = null, said = ""] =
    /^NATS\/1\.0[ ]+(\d{3})[ ]*([^\r]*)/.exec(body.toString("latin1", 0, Math.min(head, 256))) ?? []
  return { ...rest, status, said, head: body.subarray(0, head), content: body.subarray(head) }
}

/** The headers that the publisher of a message has given it. */
export const headersIn = (head: Buffer): ReadonlyArray<readonly [name: string, value: string]> => {
  const headers: Array<readonly [string, string]> = []
  let at = head.indexOf("\r\n") + 2
  while (at >= 2 && at < head.length && headers.length < mostHeaders) {
    const end = head.indexOf("\r\n", at)
    const line = head.toString("utf8", at, end === -1 ? head.length : end)
    const colon = line.indexOf(":")
    const value = line.slice(colon + 1).trim()
    if (colon > 0 && value.length <= longestValue) headers.push([line.slice(0, colon), value])
    at = end === -1 ? head.length : end + 2
  }
  return headers
}

/** What `$JS.ACK.…`, to which a message of a stream is acknowledged, says of it; null: it is no message of a stream. */
export const deliveryIn = (reply: string): string | null => {
  const words = reply.split(".")
  // Newer servers name the domain and the account before the stream, and may have more behind the numbers.
  const at = words.length === 9 ? 2 : 4
  const [stream = "", , , sequence = "", , time = ""] = words.slice(at)
  const isOne =
    reply.startsWith("$JS.ACK.") &&
    (words.length === 9 || words.length >= 11) &&
    /^[^\s\p{Cc}]{1,255}$/u.test(stream) &&
    /^\d{1,20}$/.test(sequence) &&
    /^\d{1,20}$/.test(time)
  // A stream that is made again counts from one: the time tells its messages from those of the old one.
  return isOne ? `${stream}.${sequence}.${time}` : null
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

const codeOf = ({ code, err_code }: Members): string => {
  const number = typeof err_code === "number" ? err_code : code
  return typeof number === "number" ? String(number) : "ERR"
}

/** Why JetStream refuses a request; null: it does not. */
const refusalIn = (told: Members | null): BrokerRefusal | null => {
  const error = told?.["error"]
  if (typeof error !== "object" || error === null) return null
  const { description } = error as Members
  return new BrokerRefusal({
    code: codeOf(error as Members),
    said: typeof description === "string" ? description : "",
    shared: false
  })
}

/** The limits of a consumer for one pull; 0: none. */
export interface PullLimits {
  readonly batch: number
  readonly bytes: number
  /** Nanoseconds. */
  readonly expires: number
}

/** What a consumer is. Or why one cannot pull from it. */
export const consumerIn = (content: Buffer): PullLimits | BrokerRefusal => {
  const told = membersOf(content)
  const refused = refusalIn(told)
  if (refused !== null) return refused
  const config = told?.["config"]
  if (typeof config !== "object" || config === null) {
    return new BrokerRefusal({ code: "NO_STREAM", said: "", shared: false })
  }
  const { ack_policy, deliver_subject, max_batch, max_bytes, max_expires } = config as Members
  if (typeof deliver_subject === "string" && deliver_subject !== "") {
    return new BrokerRefusal({ code: "PUSH_CONSUMER", said: "", shared: false })
  }
  // Otherwise the server takes a message for dealt with that was only delivered.
  if (ack_policy !== "explicit") return new BrokerRefusal({ code: "ACK_POLICY", said: "", shared: false })
  const limit = (value: unknown): number => (typeof value === "number" && value > 0 ? value : 0)
  return { batch: limit(max_batch), bytes: limit(max_bytes), expires: limit(max_expires) }
}

/** What a stream calls the message: its own name, the number, and whether it had it already. Or why it has not taken it. */
export const confirmationIn = (content: Buffer): string | BrokerRefusal => {
  const told = membersOf(content)
  const refused = refusalIn(told)
  if (refused !== null) return refused
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
