import { of, row, type Section, tests } from "./Facts.ts"

const api = tests("packages/api/test/Channels.test.ts")
const stored = tests("packages/storage/test/Channels.test.ts")
const input = tests("packages/resources/test/ProviderSource.test.ts")
const lists = tests("packages/api/test/EveryList.test.ts")

const shown = stored("A channel is shown with its subscriptions, account, fallback, alerts and counts of two days")
const complete = input("A provider source is stored with its complete inputs and the defaults of its delivery")
const faults = input("All invalid settings of a provider are reported at once, unknown ones with the nearest name")
const merged = input("A change merges the provider by member and replaces the inputs as a whole")
const delivered = api("The delivery of a source is changed by PATCH and PUT, and the answer is the source")
const bulk = api("Bulk changes each source on its own and lists those that it could not change")
const retried = api("A retry is accepted with 202 and is the same one when it is repeated")
const run = api("A run is accepted with 202 and listed among the runs of its source")
const runs = stored("Runs are listed in pages, the newest first, and those that matter on their own")
const happened = stored("What happened to a channel is shown without tokens and secrets, the newest first")
const counts = stored("Counts of channels are summed for each date and name of a team")
const clamped = api("Limits of channel reads are clamped, and what is no whole number is refused")

const settings = "schedule schedule.interval_minutes auto_fallback max_failures restore_after_minutes"

export const channels: Section = {
  title: "Provider sources and channels",
  endpoints: [
    row(
      "GET /sources/channels",
      stored("Channels of sources with instant delivery are listed by name, and narrowed to statuses")
    ),
    row("GET /sources/channel-metrics", counts),
    row("POST /sources/channels/bulk", bulk),
    row("POST /sources/{id}/channel-retry", retried),
    row("GET /sources/{id}/channel-events", happened),
    row("PATCH,PUT /sources/{id}/delivery", delivered),
    row("POST /sources/{id}/run", run),
    row("GET /sources/{id}/runs; GET /sources/{id}/activity", runs)
  ],
  fields: {
    ProviderSettings: [],
    ProviderSettingsWrite: [
      of(
        "provider_key definition_key",
        input("Provider and definition must be known, and the error suggests the nearest name")
      ),
      of("provider_account_id", stored("The account of a source must be one of its team at its provider")),
      of("inputs", faults),
      of(settings, merged)
    ],
    DeliveryPatch: [
      of("delivery_mode", input("A change of the delivery mode selects the other definition of the same trigger")),
      of(settings, input("An empty or invalid delivery is refused with the fields that are wrong"))
    ],
    Channel: [],
    ChannelSource: [],
    ChannelHistory: [],
    ChannelMetrics: [],
    ChannelBulk: [of(`source_ids action ${settings}`, bulk)],
    ChannelBulkResult: [],
    ChannelRetry: [],
    ScheduledSourceRun: [],
    SourceRun: []
  },
  states: [
    row("channel status connecting, active, expiring, error, fallback", shown),
    row(
      "delivery change without a matching definition: 409",
      input("A delivery without a definition of that mode is refused")
    ),
    row("retry of a polling, a disabled and an unconnected source: 409", retried),
    row("a provider source takes no requests of senders", stored("Nobody can send to the URL of a provider source")),
    row(
      "the type PROVIDER never changes",
      input("The type PROVIDER is chosen once, and only its sources have a provider")
    ),
    row("a change of the trigger", input("A change of the trigger needs inputs that fit it, and the provider stays"))
  ],
  limits: [
    row(
      "channel list: 250 sources",
      stored("Channels of sources with instant delivery are listed by name, and narrowed to statuses")
    ),
    row("channel events: 100, at most 200; metrics: 14 days, at most 90", clamped),
    row("bulk: 100 source ids", input("A bulk change takes 1 to 100 different ids, and a retry takes no settings")),
    row(
      "targets: 50 for a source",
      input("A source with as many targets as allowed is accepted, and one more is refused")
    ),
    row("runs and activity: 100 at most", lists("List ${path} has the documented envelope, order and limits")),
    row("schedule 1 to 1440 minutes; max_failures 1 to 20; restore_after_minutes 1 to 1440", faults),
    row("defaults of the delivery", complete)
  ]
}
