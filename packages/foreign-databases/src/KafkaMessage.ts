import type { Received } from "@tidegate/connectors/Subscriptions"
import { keyHeader, maxMessageBody, offsetHeader, partitionHeader, topicHeader } from "@tidegate/model/BrokerSource"
import { encodingNames, longestValue, typeNames } from "./Consumer.ts"
import type { ReadRecord } from "./KafkaBatches.ts"

const nothing = Buffer.alloc(0)

const first = ({ headers }: ReadRecord, names: ReadonlyArray<string>): string | null =>
  names
    .map((name) => headers.find(([own]) => own === name)?.[1])
    .find((value) => value !== undefined && value !== "") ?? null

/** `clusterId`: empty if the brokers do not say it. */
export const messageOf = (
  record: ReadRecord,
  { clusterId, partition, topic }: { readonly clusterId: string; readonly topic: string; readonly partition: number }
): Omit<Received, "receipt"> => {
  const { headers, key, offset, time } = record
  const value = record.value ?? nothing
  return {
    // With the time, because offsets begin again when a topic is deleted and made again.
    id: [...(clusterId === "" ? [] : [clusterId]), topic, partition, offset, time].join(":"),
    contentType: first(record, typeNames),
    contentEncoding: first(record, encodingNames),
    facts: {
      [topicHeader]: topic,
      [partitionHeader]: String(partition),
      [offsetHeader]: String(offset),
      ...(key === null || key.length > longestValue ? {} : { [keyHeader]: key.toString("utf8") })
    },
    headers: headers.filter(([name]) => !typeNames.includes(name) && !encodingNames.includes(name)),
    body: value.length > maxMessageBody ? null : value,
    size: value.length
  }
}
