import { Schema } from "effect"
import { OneOf } from "@tidegate/model/AuthSettings"
import { type Meaning, passing } from "./BrokerSession.ts"
import { brokerSource, prefetching } from "./BrokerSource.ts"
import { kafkaPlace, kafkaTopic, leadsToCluster } from "./Kafka.ts"
import { kafkaErrors } from "./KafkaErrors.ts"
import { serverConnection } from "./Server.ts"
import { setting, text } from "./Settings.ts"

const longestGroup = 255
const notGroup = `must be 1 to ${longestGroup} bytes without control characters`
const Group = text
  .annotate({
    description:
      "The consumer group, which remembers how far the topic is read. Members of a group share the partitions"
  })
  .check(
    Schema.isPattern(/^\P{Cc}{1,255}$/u, { message: notGroup }).abort(),
    Schema.makeFilter((name: string) => Buffer.byteLength(name) <= longestGroup || notGroup)
  )

const notNow = passing("the cluster cannot give the records now")

const particular: Readonly<Record<string, Meaning>> = {
  SASL_AUTHENTICATION_FAILED: passing("the server does not let the source in"),
  UNSUPPORTED_SASL_MECHANISM: passing("the broker does not offer sasl_mechanism"),
  ILLEGAL_SASL_STATE: passing("the broker wants no sign-in, or another one"),
  TOPIC_AUTHORIZATION_FAILED: passing("the user may not read the topic"),
  GROUP_AUTHORIZATION_FAILED: passing("the user may not be a member of the group"),
  CLUSTER_AUTHORIZATION_FAILED: passing("the user may not use the cluster"),
  UNKNOWN_TOPIC_OR_PARTITION: passing("there is no such topic, or the user may not see it"),
  LEADER_NOT_AVAILABLE: passing("a partition of the topic has no leader now"),
  COORDINATOR_NOT_AVAILABLE: passing("the cluster has nobody now who knows the group"),
  INCONSISTENT_GROUP_PROTOCOL: passing(
    "the group has members that share the partitions by neither range nor roundrobin, or it is no consumer group of the classic protocol"
  ),
  INVALID_GROUP_ID: passing("the cluster does not take the name of the group"),
  INVALID_SESSION_TIMEOUT: passing("the cluster does not let a member be silent for 10 seconds"),
  GROUP_MAX_SIZE_REACHED: passing("the group has as many members as the cluster allows"),
  UNSUPPORTED_COMPRESSION_TYPE: passing("the broker does not give the records in their compression"),
  UNSUPPORTED_VERSION: passing("the broker does not speak this version of the protocol"),
  UNKNOWN_SERVER_ERROR: passing("the broker has failed, and does not say why")
}

/** Records of a topic of Kafka, read as a member of a consumer group. */
export const kafkaSource = brokerSource({
  type: "KAFKA",
  name: "Kafka",
  description: "A source whose requests are the records of a topic of Kafka.",
  settings: {
    ...kafkaTopic,
    group: setting(Group, "tidegate"),
    auto_offset_reset: setting(
      OneOf(["earliest", "latest"]).annotate({
        description:
          "Where a partition begins of which the group has no offset, or one that the topic does not have any more. earliest: with the oldest record; latest: with what is added from then on"
      }),
      "latest"
    ),
    prefetch: prefetching("Records that are taken before the first of them is stored"),
    ...serverConnection
  },
  auths: ["BASIC_AUTH", null],
  leadsTo: leadsToCluster,
  protocol: "kafka",
  place: (settings, auth) => ({
    ...kafkaPlace(settings, auth),
    group: settings.group,
    offsetReset: settings.auto_offset_reset,
    prefetch: settings.prefetch
  }),
  meanings: {
    ...Object.fromEntries(kafkaErrors.filter(({ isRetriable }) => isRetriable).map(({ name }) => [name, notNow])),
    ...particular
  },
  example: {
    subscription: { bootstrap_servers: "kafka-1.example.com:9093,kafka-2.example.com:9093", topic: "orders" },
    auth_type: "BASIC_AUTH",
    auth: { username: "tidegate", password: "a-password" }
  }
})
