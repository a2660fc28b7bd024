import { brokerSources } from "@tidegate/connectors/BrokerSources"
import { providerType } from "@tidegate/model/ProviderSource"
import { scheduledType } from "@tidegate/model/ScheduledSource"
import type { SourceType } from "@tidegate/model/SourceType"
import { systemType } from "@tidegate/model/SystemSource"
import { introductions } from "@tidegate/verification/introductions/Introductions"
import { otherVendors } from "@tidegate/verification/OtherVendors"
import { providers } from "@tidegate/verification/Providers"
import { generalSamples, samplesOf } from "@tidegate/verification/samples/Catalog"
import { signingSecretOf } from "@tidegate/verification/Signing"
import { plainType } from "@tidegate/verification/SourceTypes"

/** The types of sources as people know them: those of each group by their names. */

const samplesFor = (type: string): ReadonlyArray<string> =>
  (samplesOf(type) ?? generalSamples).samples.map(({ event }) => event)

const unsendable = { documentation_url: null, samples: [], signs_test_requests: false }

const plain: SourceType = {
  type: plainType,
  name: "Webhook",
  description: "Webhooks of any sender: the settings say how its requests are verified.",
  group: "plain",
  documentation_url: null,
  setup: [
    "Let the sender post its requests to the URL of this source.",
    "If the sender signs its requests or presents a secret, choose how in `auth_type`, and enter the secret in `auth`. Otherwise everybody who knows the URL can send."
  ],
  samples: samplesFor(plainType),
  signs_test_requests: true
}

const ofProviders: ReadonlyArray<SourceType> = providers.flatMap(({ authType, types }) =>
  types.map((type) => {
    const { description, documentation, name, setup } = introductions[type]
    return {
      type,
      name,
      description,
      group: "webhooks",
      documentation_url: documentation,
      setup,
      samples: samplesFor(type),
      signs_test_requests: signingSecretOf({ type, auth_type: authType }) !== null
    }
  })
)

const ofOthers: ReadonlyArray<SourceType> = Object.entries(otherVendors).map(([type, name]) => ({
  type,
  name,
  description: `Webhooks of ${name}: the settings say how they are verified.`,
  group: "webhooks",
  documentation_url: null,
  setup: [
    `In the webhook settings of ${name}, add a webhook with the URL of this source, and choose its events.`,
    `Look up how ${name} signs its requests or which secret it presents. Choose that in \`auth_type\`, and enter the secret in \`auth\`.`
  ],
  samples: samplesFor(type),
  signs_test_requests: true
}))

const ofBrokers = brokerSources.map(({ description, name, type }): SourceType => ({
  type,
  name,
  description,
  group: "brokers",
  setup: [
    `Enter in \`subscription\` to what the gateway subscribes at ${name}, and in \`auth\` the credentials with which it signs in.`,
    "The page of the source shows whether the gateway is connected."
  ],
  documentation_url: null,
  samples: [],
  signs_test_requests: false
}))

const scheduled: SourceType = {
  type: scheduledType,
  name: "Schedule",
  description: "A source that makes one request at each time of its schedule.",
  group: "schedule",
  setup: ["Enter the times in `schedule.cron`, for example `0 9 * * 1-5`, and their time zone in `schedule.timezone`."],
  ...unsendable
}

const items: SourceType = {
  type: providerType,
  name: "Items of an account",
  description: "A source whose requests are the items of a provider: it gets notifications, or reads a list regularly.",
  group: "items",
  setup: [
    "Connect an account of the provider, if it needs one.",
    "Choose in `provider` which of its items become requests."
  ],
  ...unsendable
}

const system: SourceType = {
  type: systemType,
  name: "Events of the gateway",
  description: "The source whose requests are the gateway's own events. A team has one.",
  group: "gateway",
  setup: ["Connect it to a destination that shall be told of issues."],
  ...unsendable
}

const byName = (types: ReadonlyArray<SourceType>): ReadonlyArray<SourceType> =>
  types.toSorted((a, b) => a.name.localeCompare(b.name, "en"))

export const sourceTypes: ReadonlyArray<SourceType> = [
  plain,
  ...byName([...ofProviders, ...ofOthers]),
  ...byName(ofBrokers),
  scheduled,
  items,
  system
]
