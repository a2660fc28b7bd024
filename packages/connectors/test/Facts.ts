import type { AttemptFacts } from "@tidegate/connectors/Connector"
import type { Message } from "@tidegate/model/Message"

/** The facts that a sender gets about an attempt: the first attempt of an event that no transformation has changed. */
export const factsOf = (shown: Message, change: Partial<AttemptFacts> = {}): AttemptFacts => ({
  eventId: "evt_1",
  requestId: "req_1",
  teamId: "tm_1",
  sourceId: "src_1",
  connectionId: "con_1",
  destinationId: "des_1",
  webhookId: "evt_1",
  attemptNumber: 1,
  trigger: "INITIAL",
  willRetryAfter: null,
  sourceName: "source",
  connectionName: "connection",
  destinationName: "destination",
  verified: true,
  originalIp: null,
  createdAt: 0,
  timestampSeconds: 0,
  shown,
  orderingKey: null,
  ...change
})
