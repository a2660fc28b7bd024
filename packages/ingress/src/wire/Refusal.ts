import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http"
import type { Socket } from "node:net"
import { inertPolicy } from "@tidegate/model/HeaderRules"
import { type ErrorCode, fail, toResponse } from "@tidegate/model/GatewayError"
import { answerUnderWay } from "./NodeInternals.ts"

/** Why a client is refused before its request is processed. */
export interface Refusal {
  readonly code: ErrorCode
  readonly message: string
  readonly headers?: Readonly<Record<string, string>>
}

export const refusal = (code: ErrorCode, message: string, headers: Refusal["headers"] = {}): Refusal => ({
  code,
  message,
  headers
})

const answerOf = ({ code, headers, message }: Refusal) => {
  const answer = toResponse(fail(code, message))
  const body = JSON.stringify(answer.body)
  return {
    status: answer.status,
    headers: {
      ...headers,
      "content-type": "application/json; charset=utf-8",
      "content-length": String(Buffer.byteLength(body)),
      "content-security-policy": inertPolicy,
      "x-content-type-options": "nosniff",
      connection: "close"
    },
    body
  }
}

/** Answers a refused request and ends its connection. */
export const refuseRequest = (response: ServerResponse, why: Refusal): void => {
  const { body, headers, status } = answerOf(why)
  response.writeHead(status, headers)
  response.end(body)
}

/**
 * Answers on the connection itself and ends it, if there is no request to answer or the rest of one is not awaited. `message`: the
 * request that the refusal concerns. A pending answer to an earlier request is sent first, because the client would mistake this one for it.
 */
export const refuseOnWire = (socket: Socket, why: Refusal, message: IncomingMessage | null = null): void => {
  if (!socket.writable) return void socket.destroy()
  const owed = answerUnderWay(socket)
  if (message !== null && owed?.req !== message) return void socket.destroy()
  if (owed !== null && owed.req.complete) {
    socket.pause()
    owed.once("close", () => socket.destroy())
    return
  }
  if (owed !== null && owed.headersSent) return void socket.destroy()
  const { body, headers, status } = answerOf(why)
  const lines = Object.entries({ ...headers, date: new Date().toUTCString() }).map(
    ([name, value]) => `${name}: ${value}\r\n`
  )
  socket.pause()
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${body}`)
  socket.destroySoon()
}
