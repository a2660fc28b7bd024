import { awsEventBridge, awsKinesis, awsSns, awsSqs } from "./Aws.ts"
import { azureServiceBus } from "./AzureServiceBus.ts"
import { chatBot } from "./ChatBot.ts"
import { chatWebhook } from "./ChatWebhook.ts"
import { cli } from "./Cli.ts"
import { emailApi } from "./EmailApi.ts"
import { gcpPubSub, mailbox, spreadsheet } from "./Google.ts"
import { http } from "./Http.ts"
import { kafka } from "./Kafka.ts"
import { messagingChat, messagingMms, messagingSms } from "./Messaging.ts"
import { messenger } from "./Messenger.ts"
import { mockApi } from "./MockApi.ts"
import { mysql } from "./Mysql.ts"
import { natsJetStream } from "./NatsJetStream.ts"
import { objectStoreR, objectStoreS } from "./ObjectStore.ts"
import { pull } from "./Pull.ts"
import { rabbitMq } from "./RabbitMq.ts"
import { redisStream } from "./RedisStream.ts"
import { smtp } from "./Smtp.ts"
import { sqlDatabase } from "./SqlDatabase.ts"
import type { ConformanceRow } from "./Row.ts"

/** One of each type. */
export const rows: ReadonlyArray<ConformanceRow> = [
  http,
  cli,
  pull,
  mockApi,
  spreadsheet,
  mailbox,
  emailApi,
  smtp,
  chatBot,
  chatWebhook,
  messenger,
  messagingChat,
  messagingSms,
  messagingMms,
  objectStoreR,
  objectStoreS,
  sqlDatabase,
  mysql,
  rabbitMq,
  redisStream,
  natsJetStream,
  kafka,
  awsSqs,
  awsSns,
  awsEventBridge,
  awsKinesis,
  gcpPubSub,
  azureServiceBus
]

const byType: ReadonlyMap<string, ConformanceRow> = new Map(rows.map((row) => [row.type, row]))

/** What the suites know of a type. Throws where nobody has told them. */
export const rowOf = (type: string): ConformanceRow => {
  const row = byType.get(type)
  if (row === undefined) throw new Error(`${type} has no row in packages/connectors/test/rows`)
  return row
}
