import type { ServerResponse } from "node:http"
import type { Socket } from "node:net"

/**
 * The undocumented fields of Node's HTTP server that the gateway reads, all of them. Node has no public way for any: nothing leads
 * from a connection to its answer or to the bytes that are being parsed, and an answer with `connection: close` closes at once. To
 * note each answer would cost every request what only a refusal needs. The Node version comes with the project; `WireServer.test.ts`
 * and `test/security/BadInput.test.ts` fail where a field is gone.
 */

/** The answer that is under way on a connection; null: none. */
export const answerUnderWay = (socket: Socket): ServerResponse | null =>
  (socket as { _httpMessage?: ServerResponse | null })._httpMessage ?? null

/** What the parser has before it while it tells of a request; null where that is not known. */
export const bytesBeingParsed = (socket: Socket): Buffer | null =>
  (socket as { parser?: { getCurrentBuffer?: () => Buffer | undefined } }).parser?.getCurrentBuffer?.() ?? null

/** Has Node leave the connection open after the answer; answers whether it would have closed it. */
export const leaveOpen = (response: ServerResponse): boolean => {
  const internal = response as { _last?: boolean }
  const isLast = internal._last === true
  internal._last = false
  return isLast
}
