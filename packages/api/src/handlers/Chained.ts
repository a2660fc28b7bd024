import type { HttpServerRequest } from "effect/http"
import { loopHeader } from "@tidegate/model/HeaderRules"
import type { Message } from "@tidegate/model/Message"

/** A request that a call makes continues the call's chain, when the gateway itself has made the call. */
export const chained = (message: Message, { headers }: HttpServerRequest.HttpServerRequest): Message => {
  const chain = headers[loopHeader]
  return chain === undefined ? message : { ...message, headers: { ...message.headers, [loopHeader]: chain } }
}
