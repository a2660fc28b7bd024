import { connect } from "node:net"
import { patience, sleep } from "./Waiting.ts"

/** One answer as it was received. */
export interface Answer {
  readonly status: number
  readonly reason: string
  /** By lower-case name; the values of repeated headers are joined with ", ". */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface Conversation {
  /** All answers in the order of arrival, interim ones (1xx) included. */
  readonly answers: ReadonlyArray<Answer>
  /** The last answer, which decides; throws if there is none. */
  readonly final: Answer
  /** Whether the server ended the connection. */
  readonly closed: boolean
}

export interface TalkOptions {
  /** How many final answers to wait for. Default: read until the server closes the connection. */
  readonly answers?: number
  /** Ends the client's side after the last part. The server may still answer. */
  readonly end?: boolean
  /** Destroys the connection after the last part, answered or not. */
  readonly cut?: boolean
  /** Milliseconds between the parts, or a promise that the second part waits for. */
  readonly pause?: number | Promise<unknown>
  readonly patienceMs?: number
  /** The loopback address that it connects from, for tests of limits by address. */
  readonly from?: string | undefined
  /** The answer has no body, whatever its headers say. */
  readonly head?: boolean
}

/** The server did not send the answers that the caller waited for. */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer"
}

/**
 * Sends exactly these bytes, and reads the answers: for requests that an ordinary client would correct. Text is sent as latin-1.
 */
export const talk = (
  port: number,
  parts: ReadonlyArray<string | Uint8Array>,
  options: TalkOptions = {}
): Promise<Conversation> =>
  new Promise((resolve, reject) => {
    const { patienceMs = patience } = options
    const socket = connect({ port, host: "127.0.0.1", localAddress: options.from })
    socket.setNoDelay(true)
    let received: Buffer = Buffer.alloc(0)
    let fault = ""
    const timer = setTimeout(() => settle(false, `nothing more within ${patienceMs} ms`), patienceMs)

    const settle = (closed: boolean, why: string): void => {
      clearTimeout(timer)
      socket.destroy()
      const answers = parseAnswers(received, options.head === true)
      const finals = answers.filter(({ status }) => status >= 200)
      const final = finals.at(-1)
      const enough = options.cut === true || finals.length >= (options.answers ?? 1) || (closed && final === undefined)
      if (!enough && !closed)
        return reject(new NoAnswer(`${why}${fault}: ${received.toString("latin1").slice(0, 300)}`))
      resolve({
        answers,
        closed,
        get final() {
          if (final === undefined) throw new NoAnswer(`${why}${fault}: ${received.toString("latin1").slice(0, 300)}`)
          return final
        }
      })
    }

    socket.on("data", (chunk: Buffer) => {
      received = Buffer.concat([received, chunk])
      if (options.answers === undefined) return
      const finals = parseAnswers(received, options.head === true).filter(({ status }) => status >= 200)
      if (finals.length >= options.answers) settle(false, "")
    })
    socket.on("error", (error) => {
      fault = `, ${error.message}`
    })
    socket.on("close", () => settle(true, "the connection was closed"))

    void (async () => {
      for (const [index, part] of parts.entries()) {
        if (index > 0) await (typeof options.pause === "number" ? sleep(options.pause) : options.pause)
        if (socket.destroyed) return
        const bytes: Uint8Array = typeof part === "string" ? Buffer.from(part, "latin1") : part
        await new Promise<void>((written) => socket.write(bytes, () => written()))
      }
      if (options.cut === true) settle(false, "cut")
      else if (options.end === true) socket.end()
    })()
  })

/** The complete answers in `bytes`. */
const parseAnswers = (bytes: Buffer, head: boolean): ReadonlyArray<Answer> => {
  const answers: Array<Answer> = []
  let at = 0
  while (at < bytes.length) {
    const headEnd = bytes.indexOf("\r\n\r\n", at)
    if (headEnd < 0) break
    const [statusLine = "", ...lines] = bytes.subarray(at, headEnd).toString("latin1").split("\r\n")
    const [, status = "", reason = ""] = /^HTTP\/1\.[01] (\d{3}) ?(.*)$/.exec(statusLine) ?? []
    if (status === "") throw new NoAnswer(`not an HTTP answer: ${statusLine.slice(0, 200)}`)
    const headers: Record<string, string> = {}
    for (const line of lines) {
      const colon = line.indexOf(":")
      const name = line.slice(0, colon).toLowerCase()
      const value = line.slice(colon + 1).trim()
      headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`
    }
    const code = Number(status)
    const bodiless = head || code < 200 || code === 204 || code === 304
    const body = bodiless ? { text: "", next: headEnd + 4 } : readBody(bytes, headEnd + 4, headers)
    if (body === null) break
    answers.push({ status: code, reason, headers, body: body.text })
    at = body.next
  }
  return answers
}

const readBody = (
  bytes: Buffer,
  from: number,
  headers: Readonly<Record<string, string>>
): { readonly text: string; readonly next: number } | null => {
  if (headers["transfer-encoding"] === "chunked") {
    let at = from
    let text = ""
    for (;;) {
      const lineEnd = bytes.indexOf("\r\n", at)
      if (lineEnd < 0) return null
      const size = Number.parseInt(bytes.subarray(at, lineEnd).toString("latin1"), 16)
      const end = lineEnd + 2 + size
      if (bytes.length < end + 2) return null
      text += bytes.subarray(lineEnd + 2, end).toString("utf8")
      at = end + 2
      if (size === 0) return { text, next: at }
    }
  }
  if (headers["content-length"] === undefined)
    return { text: bytes.subarray(from).toString("utf8"), next: bytes.length }
  const end = from + Number(headers["content-length"])
  return end > bytes.length ? null : { text: bytes.subarray(from, end).toString("utf8"), next: end }
}

export interface RequestParts {
  readonly method?: string
  readonly path: string
  /** The header lines to send. Give a repeated header twice. */
  readonly headers?: ReadonlyArray<readonly [name: string, value: string]>
  readonly body?: string | Uint8Array
  /** Keeps the connection open after the answer. */
  readonly keepAlive?: boolean
  readonly from?: string | undefined
}

/** The bytes of a request. A Host header is added, and a Content-Length unless the headers already define the body's framing. */
export const requestBytes = ({
  body,
  headers = [],
  keepAlive = false,
  method = "POST",
  path
}: RequestParts): Buffer => {
  const bytes = body === undefined ? Buffer.alloc(0) : typeof body === "string" ? Buffer.from(body) : Buffer.from(body)
  const names = new Set(headers.map(([name]) => name.toLowerCase()))
  const lines = [`${method} ${path} HTTP/1.1`]
  if (!names.has("host")) lines.push("Host: gateway.test")
  if (!keepAlive && !names.has("connection")) lines.push("Connection: close")
  for (const [name, value] of headers) lines.push(`${name}: ${value}`)
  const framed = names.has("content-length") || names.has("transfer-encoding")
  if (!framed && body !== undefined) lines.push(`Content-Length: ${bytes.length}`)
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), bytes])
}

/** Sends one request on a new connection, and returns its answer. */
export const request = async (port: number, parts: RequestParts): Promise<Answer> =>
  (await talk(port, [requestBytes(parts)], { answers: 1, head: parts.method === "HEAD", from: parts.from })).final
