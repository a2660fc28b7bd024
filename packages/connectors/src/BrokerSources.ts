import type { BrokerSource } from "./BrokerSource.ts"
import { kafkaSource } from "./KafkaSource.ts"
import { natsSource } from "./NatsSource.ts"
import { pubSubSource } from "./PubSubSource.ts"
import { rabbitMqSource } from "./RabbitMqSource.ts"
import { redisSource } from "./RedisSource.ts"
import { sqsSource } from "./SqsSource.ts"

/** The types of sources whose requests are messages of a broker. A new type is one file and one line here. */
export const brokerSources: ReadonlyArray<BrokerSource> = [
  rabbitMqSource,
  natsSource,
  sqsSource,
  redisSource,
  kafkaSource,
  pubSubSource
]

export const brokerSourceOf = (type: string): BrokerSource | undefined => brokerSources.find((row) => row.type === type)
