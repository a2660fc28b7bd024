import type { AttemptErrorCode } from "@tidegate/model/AttemptErrorCode"
import { FrameCutter, type FrameHead } from "./FrameCutter.ts"

/** A server has exceeded the limits of an untrusted peer, or has ended the session. The message contains no secret. */
export class ServerFault extends Error {
  override readonly name = "ServerFault"
  readonly code: AttemptErrorCode

  constructor(code: AttemptErrorCode, message: string) {
    super(message)
    this.code = code
  }
}

/** A server does not keep to its protocol. */
export const breach = (message: string): ServerFault => new ServerFault("PROTOCOL_ERROR", message)

/** A server has ended the session with a reason. */
export class FatalRefusal extends Error {
  override readonly name = "FatalRefusal"
  readonly state: string
  readonly said: string

  constructor(state: string, said: string) {
    super("the server has ended the session")
    this.state = state
    this.said = said
  }
}

/** Limits of a server's answer to each message: an insert is answered in about a hundred bytes, plus notices of triggers. */
const maxBytes = 256 * 1024
const maxFrames = 1_000

/** An error may repeat a value; all other messages that are passed on are short. */
const longestError = 64 * 1024
const longestOther = 2_048

/** Maximum cost of hashing a password for the server: about 20 ms. */
export const maxIterations = 100_000
/** The minimum of the SCRAM standard (RFC 7677), and PostgreSQL's default. */
export const minIterations = 4_096

const letters = (text: string): ReadonlySet<number> => new Set(Array.from(text, (letter) => letter.charCodeAt(0)))
/**
 * ParseComplete, BindComplete, CloseComplete, NoData, CommandComplete, EmptyQueryResponse, ReadyForQuery and BackendKeyData: all that
 * answers an insert.
 */
const passing = letters("123nCIZK")
/** Parameters, notices and notifications, which are not used. */
const dropped = letters("SNA")
const error = "E".charCodeAt(0)
const authentication = "R".charCodeAt(0)
const ready = "Z".charCodeAt(0)

/** Authentication messages: success; and the server's own SCRAM proof, which the client verifies. */
const letIn = 0
const proof = 12

const header = 5

/**
 * The messages of a PostgreSQL server, limited in number and bytes before they are stored or parsed. A message that never answers an
 * insert ends the session: rows, copies, unknown types. At most one message is held in memory (`FrameCutter`).
 *
 * `mayReveal`: whether the server has proved its identity by its certificate. Only then it may get the password, or a digest with which the
 * password can be guessed. Otherwise only SCRAM is answered, and the sign-in counts only if the server has proved by SCRAM that it knows the
 * password. Fails closed, because an impostor would otherwise receive the rows. Even with SCRAM an impostor learns enough to test guesses of the
 * password. Each guess costs it as many hashes as it requested, so a minimum number is required.
 */
export class ServerFrames {
  readonly #mayReveal: boolean
  readonly #cutter = new FrameCutter(header, (head) => this.#begin(head))
  #bytes = 0
  #frames = 0
  /** Authentication methods that the server has requested. */
  readonly #asked = new Set<number>()
  #isReady = false

  constructor(mayReveal: boolean) {
    this.#mayReveal = mayReveal
  }

  /** A message was sent to the server, which may answer: its limits start again. */
  sent(): void {
    this.#bytes = 0
    this.#frames = 0
  }

  /** Passes on the messages that are complete. Throws if a message must end the session. */
  read(chunk: Buffer, pass: (message: Buffer) => void): void {
    this.#cutter.read(chunk, (message) => {
      this.#judge(message)
      pass(message)
    })
  }

  /** A header is complete. */
  #begin(head: Buffer): FrameHead {
    const type = head[0]!
    const size = head.readUInt32BE(1) + 1
    if (size < header) throw new ServerFault("PROTOCOL_ERROR", "the server sends a message without a length")
    const isKnown =
      passing.has(type) || dropped.has(type) || type === error || (type === authentication && !this.#isReady)
    if (!isKnown) throw new ServerFault("PROTOCOL_ERROR", "the server sends what an insert is not answered by")
    this.#frames++
    this.#bytes += size
    if (this.#frames > maxFrames || this.#bytes > maxBytes) {
      throw new ServerFault("RESPONSE_TOO_LARGE", "the server says more than an insert is answered by")
    }
    const isDropped = dropped.has(type)
    const longest = type === error ? longestError : longestOther
    if (!isDropped && size > longest) {
      throw new ServerFault("RESPONSE_TOO_LARGE", "the server sends a message that is too long")
    }
    return { size, isDropped }
  }

  #judge(message: Buffer): void {
    if (message[0] === ready) this.#isReady = true
    if (message[0] === authentication) this.#judgeAuthentication(message)
    if (message[0] === error) {
      const { said, severity, state } = errorIn(message)
      if (severity === "FATAL" || severity === "PANIC") throw new FatalRefusal(state, said)
    }
  }

  #judgeAuthentication(message: Buffer): void {
    if (message.length < header + 4) throw new ServerFault("PROTOCOL_ERROR", "the server asks for nothing")
    const method = message.readInt32BE(header)
    // Each repeated request would cost another hash.
    if (this.#asked.has(method)) throw new ServerFault("PROTOCOL_ERROR", "the server asks who is there again")
    this.#asked.add(method)
    if (method === letIn && !this.#mayReveal && !this.#asked.has(proof)) {
      throw new ServerFault(
        "AUTH_REJECTED",
        "without TLS a server has to prove by SCRAM that it knows the password, and this one lets everybody in"
      )
    }
    if ((method === 3 || method === 5) && !this.#mayReveal) {
      throw new ServerFault(
        "AUTH_REJECTED",
        "without TLS the password is proved by SCRAM alone, and the server asks for " +
          (method === 3 ? "it" : "its MD5")
      )
    }
    if (method !== 11) return
    const iterations = /(?:^|,)i=(\d+)/.exec(message.toString("latin1", header + 4))?.[1]
    if (Number(iterations) < minIterations) {
      throw new ServerFault("PROTOCOL_ERROR", `the server wants the password hashed less than ${minIterations} times`)
    }
    if (Number(iterations) > maxIterations) {
      throw new ServerFault("PROTOCOL_ERROR", `the server wants the password hashed more than ${maxIterations} times`)
    }
  }
}

/** Fields that are read: severity (the fixed and the translated one), SQLSTATE and message. */
const fieldsRead = letters("VSCM")

/** The fields of an error message. */
const errorIn = (message: Buffer): { readonly severity: string; readonly state: string; readonly said: string } => {
  const fields = new Map<string, string>()
  for (let at = header; at < message.length && message[at] !== 0;) {
    const end = message.indexOf(0, at)
    if (end === -1) break
    const field = message[at]!
    if (fieldsRead.has(field)) fields.set(String.fromCharCode(field), message.toString("utf8", at + 1, end))
    at = end + 1
  }
  return {
    severity: fields.get("V") ?? fields.get("S") ?? "",
    state: stateOf(fields.get("C")),
    said: fields.get("M") ?? ""
  }
}

/** A valid SQLSTATE, whatever the server sends. */
export const stateOf = (code: unknown): string =>
  typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) ? code : "XX000"
