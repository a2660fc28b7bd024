import { loopHeader } from "@tidegate/model/HeaderRules"
import type { Message } from "@tidegate/model/Message"
import type { RedisEntry } from "./Brokers.ts"
import { eventFields, lasting, type Meaning, messagesAtOnce, passing, publishing, stale } from "./BrokerSession.ts"
import { type AttemptFacts, connector, payloadPerStep } from "./Connector.ts"
import { filled, filling, template, TemplateText, Unrenderable } from "./Rendering.ts"
import {
  inUrl,
  leadsToServer,
  serverAddress,
  serverConnection,
  serverPlace,
  serverSignIn,
  wholeNumber
} from "./Server.ts"
import { concurrency, needed, pacing, setting } from "./Settings.ts"

const longestKey = 1_024
const maxEntries = 1_000_000_000

const notDatabase = "must be a whole number from 0 to 65535"
const notLength = `must be a whole number from 1 to ${maxEntries}, or null`

/** The number of a database of a server. */
export const redisDatabase = setting(
  wholeNumber(0, 65_535, notDatabase).annotate({ description: "The number of the database" }),
  0,
  notDatabase
)

const fieldsOf = (message: Message, facts: AttemptFacts): RedisEntry["fields"] => {
  const contentType = message.headers["content-type"]
  return [
    ["message_id", facts.webhookId],
    ...Object.entries(eventFields(facts)),
    ["content_type", typeof contentType === "string" ? contentType : ""],
    ["headers", JSON.stringify(message.headers)],
    ...(facts.loop === undefined ? [] : [[loopHeader, facts.loop] as const]),
    ["body", message.body]
  ]
}

/** By the first word of the server's error. */
const meanings: Readonly<Record<string, Meaning>> = {
  WRONGPASS: passing("the server does not know the user or the password", "AUTH_REJECTED"),
  NOAUTH: passing("the server wants a password", "AUTH_REJECTED"),
  NOPERM: passing("the user may not do that", "AUTH_REJECTED"),
  DENIED: passing("the server takes connections of its own machine alone", "AUTH_REJECTED"),
  WRONGTYPE: lasting("the key holds a value that is no stream"),
  OOM: passing("the memory of the server is full"),
  MISCONF: passing("the server cannot write to its disk"),
  LOADING: passing("the server has not read its data yet"),
  BUSY: passing("the server is busy with a script"),
  READONLY: stale("the server is a replica, which takes no entries"),
  MASTERDOWN: stale("the server is a replica that has lost its primary"),
  NOREPLICAS: passing("the server has fewer replicas than it needs to take entries"),
  CLUSTERDOWN: passing("the cluster is down"),
  MOVED: passing("the stream is on another server of the cluster, and the gateway only goes to config.host"),
  ASK: passing("the stream moves to another server of the cluster, and the gateway only goes to config.host"),
  TRYAGAIN: passing("the stream moves to another server of the cluster")
}

/** Adds entries to streams of Redis, or of a server that speaks its protocol. */
export const redisStream = connector({
  type: "REDIS_STREAM",
  name: "Redis Streams",
  description: "Adds an entry to a stream of Redis.",
  settings: {
    ...serverAddress(6_379, "redis.example.com"),
    database: redisDatabase,
    stream: needed(TemplateText(1_024), "the key of the stream"),
    max_length: setting(
      wholeNumber(1, maxEntries, notLength).annotate({
        description: "About how many entries the stream keeps: the server drops older ones. Null: all"
      }),
      null,
      notLength
    ),
    ...serverConnection,
    ...pacing,
    ...concurrency
  },
  auths: ["DATABASE_PASSWORD", "NO_AUTH"],
  leadsTo: leadsToServer,
  credentials: "mask",
  perStep: { ...payloadPerStep("The field `body` of the entry"), address: serverPlace },
  example: {
    name: "orders-stream",
    type: "REDIS_STREAM",
    config: {
      host: "redis.example.com",
      stream: "orders:{{payload.type}}",
      max_length: 100_000,
      auth_type: "DATABASE_PASSWORD",
      auth: { username: "tidegate", password: "a-password" }
    }
  },
  open: (config, { settings }) => {
    const key = template(config.stream)
    return {
      kind: "session",
      method: "XADD",
      shownUrl: `${config.tls_mode === "disable" ? "redis" : "rediss"}://${inUrl(config)}/${config.database}`,
      atOnce: messagesAtOnce(config.max_concurrency),
      connect: publishing({
        protocol: "redis",
        place: { ...serverSignIn(config, settings), database: config.database },
        messageOf: (message, facts) => {
          const stream = filled(filling(message, facts), key, "stream")
          if (Buffer.byteLength(stream) > longestKey) {
            throw new Unrenderable(`config.stream makes more than ${longestKey} bytes of this event`)
          }
          return { stream, maxLength: config.max_length, fields: fieldsOf(message, facts) }
        },
        meanings,
        answer: (said) => ({ id: said })
      })
    }
  }
})
