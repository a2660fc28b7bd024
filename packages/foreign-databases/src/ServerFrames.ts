import type { AttemptErrorCode } from "@tidegate/model/AttemptErrorCode"

/** A server does not keep to what a stranger may do, or has ended the session. Its message holds nothing secret. */
export class ServerFault extends Error {
  override readonly name = "ServerFault"
  readonly code: AttemptErrorCode

  constructor(code: AttemptErrorCode, message: string) {
    super(message)
    this.code = code
  }
}

/** A server has ended the session, and says why. */
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

/** What a server may say for each thing that it is told: an insert is answered in a hundred bytes, and notices of triggers. */
const maxBytes = 256 * 1024
const maxFrames = 1_000

/** An error may repeat a value; all else that goes on is a few words. */
const longestError = 64 * 1024
const longestOther = 2_048

/** Of hashing a password once for the server: some 20 ms. */
export const maxIterations = 100_000
/** The least that the standard of SCRAM allows (RFC 7677), and what PostgreSQL does unless told. */
export const minIterations = 4_096

const letters = (text: string): ReadonlySet<number> => new Set(Array.from(text, (letter) => letter.charCodeAt(0)))
/** Parse, bind and close complete, no data, command complete, empty query, ready, key data: all that an insert is answered by. */
const passing = letters("123nCIZK")
/** Parameters, notices, notifications: nobody reads them. */
const dropped = letters("SNA")
const error = "E".charCodeAt(0)
const authentication = "R".charCodeAt(0)
const ready = "Z".charCodeAt(0)

/** Methods of authentication: there is nothing (more) to be proved; and the server's own proof of SCRAM, which the client checks. */
const letIn = 0
const proof = 12

const header = 5

/**
 * The messages of a PostgreSQL server, bounded in number and in bytes before anybody keeps or parses them. What an insert is never
 * answered by ends the session: rows, copies, what no server sends. Of what is held, there is one message at a time.
 *
 * `mayReveal`: whether the server has proved who it is by its certificate, so that it may be told the password, or a digest of it that
 * can be guessed from. Else only SCRAM is answered, and only a server that has proved by it to know the password lets us in: fails
 * closed, because whoever is in the server's place would be sent the rows. By SCRAM a stranger in the server's place learns something to try guesses against, too, each of
 * which costs it as many hashes as the server has asked for: it is not let ask for few.
 */
export class ServerFrames {
  readonly #mayReveal: boolean
  /** The message that is not whole yet, its header included; null: it is dropped. */
  #held: Buffer | null = Buffer.allocUnsafe(header)
  /** Bytes of it that are there, and that it has as far as is known. */
  #have = 0
  #size = header
  #bytes = 0
  #frames = 0
  /** Methods of authentication that the server has named. */
  readonly #asked = new Set<number>()
  #isReady = false

  constructor(mayReveal: boolean) {
    this.#mayReveal = mayReveal
  }

  /** The server is told something, and may answer. */
  told(): void {
    this.#bytes = 0
    this.#frames = 0
  }

  /** Hands on the messages that are whole now. Throws what ends the session. */
  read(chunk: Buffer, pass: (message: Buffer) => void): void {
    let at = 0
    while (at < chunk.length) {
      const part = Math.min(chunk.length - at, this.#size - this.#have)
      if (this.#held !== null) chunk.copy(this.#held, this.#have, at, at + part)
      this.#have += part
      at += part
      if (this.#have < this.#size) return
      if (this.#size === header) this.#begin()
      if (this.#have < this.#size) continue
      const message = this.#held
      this.#held = Buffer.allocUnsafe(header)
      this.#have = 0
      this.#size = header
      if (message === null) continue
      this.#judge(message)
      pass(message)
    }
  }

  /** A header is there. */
  #begin(): void {
    const head = this.#held!
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
    this.#size = size
    if (dropped.has(type)) {
      this.#held = null
      return
    }
    const longest = type === error ? longestError : longestOther
    if (size > longest) throw new ServerFault("RESPONSE_TOO_LARGE", "the server sends a message that is too long")
    this.#held = Buffer.allocUnsafe(size)
    head.copy(this.#held, 0, 0, header)
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
    // Asked again and again, each answer would cost a hash.
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

/** Severity (that of the protocol, and the one that may be translated), SQLSTATE and text. */
const told = letters("VSCM")

/** What an error says of itself. */
const errorIn = (message: Buffer): { readonly severity: string; readonly state: string; readonly said: string } => {
  const fields = new Map<string, string>()
  for (let at = header; at < message.length && message[at] !== 0;) {
    const end = message.indexOf(0, at)
    if (end === -1) break
    const field = message[at]!
    if (told.has(field)) fields.set(String.fromCharCode(field), message.toString("utf8", at + 1, end))
    at = end + 1
  }
  return {
    severity: fields.get("V") ?? fields.get("S") ?? "",
    state: stateOf(fields.get("C")),
    said: fields.get("M") ?? ""
  }
}

/** A SQLSTATE, whatever a server takes for one. */
export const stateOf = (code: unknown): string =>
  typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) ? code : "XX000"
