import type { Socket } from "node:net"

/**
 * What a target sends beside the body of its answer: status line, headers, interim answers, chunk sizes and their extensions. The HTTP client bounds the headers
 * of one answer, and reads the rest for as long as it comes.
 */
const maxBeside = 256 * 1024
/** So many bytes on the wire may go with one of the body: chunks of one byte take six. */
const perByte = 17

/** A target has sent more than an answer needs. The code is the contract's. */
class TooMuchBeside extends Error {
  override readonly name = "TooMuchBeside"
  readonly code = "RESPONSE_TOO_LARGE"

  constructor() {
    super(`the answer has more than ${maxBeside} bytes beside its body`)
  }
}

/** Bytes of one connection that no body has been found in. */
interface Meter {
  beside: number
}

/**
 * The connection that was read last. The client reads it and parses what it has read in one go, so that what its handlers are told meanwhile is about
 * this connection; it does not tell them which it is.
 */
let current: Meter = { beside: 0 }

/** Counts what the client reads of a connection, which ends when that is too much. */
export const metered = (socket: Socket): void => {
  const meter: Meter = { beside: 0 }
  const read = socket.read.bind(socket)
  socket.read = (size?: number): unknown => {
    current = meter
    if (meter.beside > maxBeside) {
      socket.destroy(new TooMuchBeside())
      return null
    }
    const chunk = read(size) as Buffer | null
    if (chunk !== null) meter.beside += chunk.length
    return chunk
  }
}

/** Bytes of a body have come. To be called by whoever the client tells of them, before it reads again. */
export const bodyRead = (bytes: number): void => {
  current.beside = Math.max(0, current.beside - bytes * perByte)
}

/** An answer has ended, with all that belongs to it. */
export const answerRead = (): void => {
  current.beside = 0
}
