import { Schema } from "effect"
import { passing } from "./BrokerSession.ts"
import { brokerSource, prefetching } from "./BrokerSource.ts"
import { faultsOfTls, natsConnection, natsPlace } from "./NatsJetStream.ts"
import { leadsToServer, serverAddress } from "./Server.ts"
import { needed, text } from "./Settings.ts"

const longestName = 255
const Name = (what: string) =>
  text.annotate({ description: what }).check(
    Schema.isPattern(new RegExp(String.raw`^[^\s\p{Cc}.*>/\\]{1,${longestName}}$`, "u"), {
      message: `must be 1 to ${longestName} characters without spaces, . * > / and \\`
    })
  )

/** Messages of a stream of NATS, pulled by a durable consumer. */
export const natsSource = brokerSource({
  type: "NATS_JETSTREAM",
  name: "NATS JetStream",
  description: "A source whose requests are the messages of a stream of NATS JetStream.",
  settings: {
    ...serverAddress(4_222, "nats.example.com"),
    stream: needed(Name("The stream, which exists already"), "the name of a stream"),
    consumer: needed(
      Name(
        "The durable consumer of the stream, which exists already, is pulled from, and wants explicit acknowledgements"
      ),
      "the name of a durable consumer"
    ),
    prefetch: prefetching("Messages that are pulled before the first of them is stored"),
    ...natsConnection
  },
  check: faultsOfTls,
  auths: ["BASIC_AUTH", "NATS_TOKEN", "NATS_NKEY", null],
  leadsTo: leadsToServer,
  protocol: "nats",
  place: ({ consumer, prefetch, stream, ...settings }, auth) => ({
    ...natsPlace(settings, auth),
    stream,
    consumer,
    prefetch
  }),
  meanings: {
    AUTHORIZATION: passing("the server does not let the source in"),
    PERMISSIONS: passing("the user may not use the consumer: it needs to publish to the consumer's own subjects"),
    NO_RESPONDERS: passing("the server has no JetStream, or none for this account"),
    NO_STREAM: passing("what answers is no consumer of a stream"),
    CONSUMER_GONE: passing("the consumer was deleted, or changed"),
    PUSH_CONSUMER: passing("the server pushes the messages of this consumer: make one to pull from"),
    ACK_POLICY: passing("the consumer does not wait for acknowledgements: it must have the policy explicit"),
    "409": passing("the consumer takes no such pull"),
    "10014": passing("there is no such consumer"),
    "10039": passing("JetStream is off for this account"),
    "10059": passing("there is no such stream"),
    "10076": passing("JetStream is off at this server")
  },
  example: {
    subscription: { host: "nats.example.com", stream: "ORDERS", consumer: "tidegate" },
    auth_type: "BASIC_AUTH",
    auth: { username: "tidegate", password: "a-password" }
  }
})
