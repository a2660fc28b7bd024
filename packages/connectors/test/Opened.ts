import { Result } from "effect"
import { type HttpSender, type OpenAuth, type OutboundRequest, Refusal } from "@tidegate/connectors/Connector"
import { connectorOf, settingsOf } from "@tidegate/connectors/Connectors"
import type { Origins } from "@tidegate/connectors/Origins"
import type { Config } from "@tidegate/connectors/Settings"
import type { Message } from "@tidegate/model/Message"
import { factsOf } from "./Facts.ts"

/** A destination of a type, opened, and what it makes of events. */

export const bearer: OpenAuth = {
  headers: { authorization: "Bearer t0ken-of-an-account" },
  signing: null,
  settings: {}
}

const mockOrigins: Origins = (origin) => origin.replace("https://", "https://stand-in-of-")

export const opened = (type: string, config: Config, auth = bearer, origins = mockOrigins): HttpSender => {
  const row = connectorOf(type)!
  const sender = row.open(Result.getOrThrow(settingsOf(row, config)), auth, origins)
  if (sender.kind !== "http") throw new Error("it does not send by HTTP")
  return sender
}

/** What is wrong with settings as a whole. */
export const faultsOf = (type: string, config: Config): ReadonlyArray<string> =>
  Result.match(settingsOf(connectorOf(type)!, config), {
    onFailure: (faults) => faults.map(({ message, path }) => `${path} ${message}`),
    onSuccess: () => []
  })

export const event = (payload: unknown, rest: Partial<Message> = {}): Message => ({
  method: "POST",
  path: "/in",
  query: "a=1&a=2",
  headers: { "content-type": "application/json", "x-tenant": "acme" },
  body: Buffer.from(typeof payload === "string" ? payload : JSON.stringify(payload)),
  ...rest
})

export const prepared = (sender: HttpSender, message: Message): OutboundRequest | Refusal =>
  sender.prepare(message, factsOf(message, { createdAt: Date.UTC(2026, 0, 2) }))

/** The request of an event that is sent. */
export const sent = (sender: HttpSender, message: Message) => {
  const request = prepared(sender, message)
  if (request instanceof Refusal) throw new Error(`${request.code}: ${request.message}`)
  const headers = Object.fromEntries(
    request.headers.flatMap((name, i) => (i % 2 === 0 ? [[name, request.headers[i + 1]!]] : []))
  )
  return { ...request, headers, text: Buffer.from(request.body).toString() }
}

export const refusalOf = (sender: HttpSender, message: Message): Refusal => {
  const request = prepared(sender, message)
  if (!(request instanceof Refusal)) throw new Error("it is sent")
  return request
}
