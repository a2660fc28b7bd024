import { Result } from "effect"
import type { Connector } from "./Connector.ts"
import { awsEventBridge } from "./AwsEventBridge.ts"
import { awsKinesis } from "./AwsKinesis.ts"
import { awsSns } from "./AwsSns.ts"
import { awsSqs } from "./AwsSqs.ts"
import { azureServiceBus } from "./AzureServiceBus.ts"
import { chatBot } from "./ChatBot.ts"
import { chatWebhook } from "./ChatWebhook.ts"
import { cli } from "./Cli.ts"
import { emailApi } from "./EmailApi.ts"
import { gcpPubSub } from "./GcpPubSub.ts"
import { http } from "./Http.ts"
import { kafka } from "./Kafka.ts"
import { mailbox } from "./Mailbox.ts"
import { messagingChat, messagingMms, messagingSms } from "./Messaging.ts"
import { messenger } from "./Messenger.ts"
import { mockApi } from "./MockApi.ts"
import { mysql } from "./Mysql.ts"
import { natsJetStream } from "./NatsJetStream.ts"
import { objectStoreR, objectStoreS } from "./ObjectStore.ts"
import { pull } from "./Pull.ts"
import { rabbitMq } from "./RabbitMq.ts"
import { redisStream } from "./RedisStream.ts"
import { masked } from "./SecretSettings.ts"
import { smtp } from "./Smtp.ts"
import { spreadsheet } from "./Spreadsheet.ts"
import { sqlDatabase } from "./SqlDatabase.ts"
import { completed, type Config, type FieldErrors } from "./Settings.ts"

/** Every destination type. The first is the default. */
export const connectors: readonly [Connector, ...ReadonlyArray<Connector>] = [
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

const byType: ReadonlyMap<string, Connector> = new Map(connectors.map((row) => [row.type, row]))

export const connectorOf = (type: string): Connector | undefined => byType.get(type)

/** The origins of all APIs that destinations call, and the default origin of token requests. */
export const knownOrigins: ReadonlySet<string> = new Set([
  ...connectors.flatMap(({ origins = [] }) => origins),
  "https://oauth2.googleapis.com"
])

/** The types whose events are only due while a consumer asks for them. */
export const pulledTypes: ReadonlyArray<string> = connectors.filter(({ isPulled }) => isPulled).map(({ type }) => type)

const parts = ["path", "query"] as const

const names = (config: Config, part: string): boolean => new RegExp(`\\b${part}\\b`).test(JSON.stringify(config))

/**
 * The parts of a request that a stored destination does not send. A step that sets one is refused, because its author believes that it has an
 * effect.
 */
export const ignoredParts = (type: string, config: Config): ReadonlyArray<string> => {
  const row = connectorOf(type)
  if (row === undefined) return []
  const carries = row.carriesPath
  return carries === undefined ? parts.filter((part) => !names(config, part)) : carries(config) ? [] : parts
}

/** The complete settings of a checked `config`, validated as a whole. */
export const settingsOf = (
  { aliases, check, settings }: Connector,
  config: Config
): Result.Result<Config, FieldErrors> =>
  Result.flatMap(completed(settings, aliases?.(config) ?? config), (complete) => {
    const faults = check?.(complete) ?? []
    return faults.length === 0 ? Result.succeed(complete as Config) : Result.fail(faults)
  })

/**
 * A stored `config` for a read. If the row is older than a setting, the setting has its default. If the row is newer than this
 * process, its type may be unknown: then it is shown unchanged.
 */
export const shownSettings = (type: string, config: Config): Config => {
  const row = connectorOf(type)
  if (row === undefined) return config
  const settings = settingsOf(row, config)
  return Result.isSuccess(settings)
    ? { ...row.shown?.(settings.success), ...masked(row, settings.success) }
    : masked(row, config)
}
