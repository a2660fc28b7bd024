import { Schema } from "effect"
import { OneOf } from "@tidegate/model/AuthSettings"
import { passing } from "./BrokerSession.ts"
import { brokerSource, prefetching } from "./BrokerSource.ts"
import { redisDatabase } from "./RedisStream.ts"
import { leadsToServer, serverAddress, serverConnection, serverSignIn, wholeNumber } from "./Server.ts"
import { needed, setting, text } from "./Settings.ts"

const longestName = 255
const notName = `must be 1 to ${longestName} bytes without control characters`
const Name = (what: string) =>
  text.annotate({ description: what }).check(
    Schema.isPattern(/^\P{Cc}{1,255}$/u, { message: notName }).abort(),
    Schema.makeFilter((name: string) => Buffer.byteLength(name) <= longestName || notName)
  )

const notClaim = "must be a whole number from 10 to 86400"
const notIn = passing("the server does not let the source in")
const elsewhere = passing(
  "the stream is on another server of the cluster, and the gateway only goes to the host of the settings"
)

/** Entries of a stream of Redis, read by a consumer group. */
export const redisSource = brokerSource({
  type: "REDIS_STREAM",
  name: "Redis Streams",
  description: "A source whose requests are the entries of a stream of Redis.",
  settings: {
    ...serverAddress(6_379, "redis.example.com"),
    database: redisDatabase,
    stream: needed(Name("The key of the stream"), "the key of the stream"),
    group: setting(Name("The consumer group"), "tidegate"),
    consumer: setting(
      Name("The consumer's name in the group. Sources that share a group need names of their own"),
      "tidegate"
    ),
    create_group: setting(
      OneOf(["never", "oldest", "newest"]).annotate({
        description:
          "Whether a group that is not there is made, and the stream with it. oldest: it reads all that the stream has; newest: what is added from then on"
      }),
      "never"
    ),
    body_field: setting(
      Name("The field that becomes the body. An entry without it becomes a JSON object with all of its fields"),
      "body"
    ),
    claim_after: setting(
      wholeNumber(10, 86_400, notClaim).annotate({
        description:
          "Seconds, after which an entry is taken over that another consumer was given and has not acknowledged"
      }),
      60,
      notClaim
    ),
    prefetch: prefetching("Entries that are read before the first of them is stored"),
    ...serverConnection
  },
  auths: ["BASIC_AUTH", null],
  leadsTo: leadsToServer,
  protocol: "redis",
  place: (settings, auth) => ({
    ...serverSignIn(settings, auth),
    database: settings.database,
    stream: settings.stream,
    group: settings.group,
    consumer: settings.consumer,
    createAt: settings.create_group === "never" ? null : settings.create_group,
    bodyField: settings.body_field,
    claimAfter: settings.claim_after,
    prefetch: settings.prefetch
  }),
  meanings: {
    WRONGPASS: notIn,
    NOAUTH: notIn,
    DENIED: notIn,
    NOPERM: passing("the user may not use the stream: it needs XREADGROUP, XACK and XAUTOCLAIM"),
    NOGROUP: passing("there is no such stream, or it has no such group: create_group makes both"),
    WRONGTYPE: passing("the key holds a value that is no stream"),
    UNBLOCKED: passing("the stream was deleted, or somebody has ended the call"),
    ERR: passing("the server does not take a command"),
    LOADING: passing("the server has not read its data yet"),
    BUSY: passing("the server is busy with a script"),
    READONLY: passing("the server is a replica, which gives no entries to groups"),
    MASTERDOWN: passing("the server is a replica that has lost its primary"),
    CLUSTERDOWN: passing("the cluster is down"),
    MOVED: elsewhere,
    ASK: elsewhere
  },
  example: {
    subscription: { host: "redis.example.com", stream: "orders", create_group: "oldest" },
    auth_type: "BASIC_AUTH",
    auth: { username: "tidegate", password: "a-password" }
  }
})
