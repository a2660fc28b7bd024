import { HttpApiEndpoint } from "effect/http-api"
import { executing } from "@tidegate/model/Permission"
import { PulledMessages, SettledMessages } from "@tidegate/model/PulledMessages"
import { ackBody, examples, nackBody, pullBody } from "@tidegate/resources/PullInput"
import { ids } from "../contract/Examples.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

const one = { params: Parameters.pathOf("destination"), query: Parameters.onlyTeam }
const [receipt] = examples.ack.receipts

const settled = { permission: executing, answer: { settled: [receipt], expired: [] }, errors: ["NOT_FOUND"] } as const

/** The calls of consumers, which fetch the events of destinations of type PULL. */
export const messageEndpoints = [
  HttpApiEndpoint.post("pullMessages", "/destinations/:id/messages/pull", {
    ...one,
    payload: pullBody.described,
    success: PulledMessages
  }).annotateMerge(
    operation({
      id: "pullDestinationMessages",
      permission: executing,
      summary: "Fetch messages of a PULL destination",
      description:
        "Each message is leased for the destination's `lease_seconds`. Acknowledge it in that time; otherwise its attempt has failed, and the retry rule applies. A message may be handed out more than once: recognise it by its `webhook-id` or `idempotency-key`.",
      body: examples.pull,
      answer: {
        messages: [
          {
            receipt,
            event_id: ids.event,
            request_id: ids.request,
            source_id: ids.source,
            connection_id: ids.connection,
            attempt_number: 1,
            ordering_key: null,
            method: "POST",
            path: "/orders?shop=1",
            headers: { "content-type": "application/json", "webhook-id": ids.event },
            body: '{"id":"o_1"}'
          }
        ],
        leased_until: "2026-01-01T00:01:00.000Z"
      },
      errors: ["NOT_FOUND"]
    })
  ),
  HttpApiEndpoint.post("ackMessages", "/destinations/:id/messages/ack", {
    ...one,
    payload: ackBody.described,
    success: SettledMessages
  }).annotateMerge(
    operation({
      ...settled,
      id: "ackDestinationMessages",
      summary: "Acknowledge messages of a PULL destination",
      description: "Their attempts are recorded as successful before the answer. Repeating it changes nothing.",
      body: examples.ack
    })
  ),
  HttpApiEndpoint.post("nackMessages", "/destinations/:id/messages/nack", {
    ...one,
    payload: nackBody.described,
    success: SettledMessages
  }).annotateMerge(
    operation({
      ...settled,
      id: "nackDestinationMessages",
      summary: "Refuse messages of a PULL destination",
      description: "Their attempts are recorded as failed before the answer, and the retry rule applies.",
      body: examples.nack
    })
  )
] as const
