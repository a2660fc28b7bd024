import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import {
  ChannelBulkResult,
  ChannelHistory,
  ChannelList,
  ChannelMetrics,
  ChannelRetry,
  ChannelStatus,
  ScheduledRun,
  SourceRun
} from "@tidegate/model/Channel"
import { administering, notByProjectKeys, reading } from "@tidegate/model/Permission"
import { ChannelBulk, DeliveryPatch, example } from "@tidegate/resources/Delivery"
import { source } from "@tidegate/resources/Source"
import { Authorization } from "../contract/Authorization.ts"
import { ids } from "../contract/Examples.ts"
import * as Lists from "../contract/Lists.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"
import * as Examples from "./ChannelsExamples.ts"

const read = notByProjectKeys(reading)

const one = { params: Parameters.pathOf("source", ids.itemSource), query: Parameters.onlyTeam }

const delivery = {
  permission: administering,
  summary: "Change how a provider source is delivered",
  description:
    "Switches between the instant and the polling definition of the same trigger, and sets when polling stands in. Members that are left out stay. The cursor is carried over, so nothing is lost or repeated. Instant delivery needs a connected account, if the provider has accounts.",
  body: example.delivery,
  answer: Examples.polling,
  errors: ["DELIVERY_INVALID", "NOT_FOUND", "DELIVERY_DEFINITION_UNAVAILABLE", "PROVIDER_ACCOUNT_NOT_CONNECTED"]
} as const

/** Provider sources: their channels, and what operators do with them. */
export class ChannelsApi extends HttpApiGroup.make("channels")
  .add(
    HttpApiEndpoint.get("list", "/sources/channels", {
      query: {
        ...Parameters.onlyTeam,
        status: Parameters.values("Only channels with these statuses", ChannelStatus)
      },
      success: ChannelList
    }).annotateMerge(
      operation({
        id: "listChannels",
        permission: read,
        summary: "List the channels of sources with instant delivery",
        description: "Returns at most 250, ordered by the source's name. The status is derived when it is read.",
        answer: Examples.channels
      })
    ),
    HttpApiEndpoint.get("metrics", "/sources/channel-metrics", {
      query: {
        ...Parameters.onlyTeam,
        days: Parameters.clamped(90, 14, "Days that are counted, up to the current one")
      },
      success: ChannelMetrics
    }).annotateMerge(
      operation({
        id: "getChannelMetrics",
        permission: read,
        summary: "Count what channels did, by date",
        description: "Returns the counts of all provider sources of the team for each date in UTC.",
        answer: Examples.metrics
      })
    ),
    HttpApiEndpoint.post("bulk", "/sources/channels/bulk", {
      query: Parameters.onlyTeam,
      payload: ChannelBulk,
      success: ChannelBulkResult
    }).annotateMerge(
      operation({
        id: "changeChannels",
        permission: administering,
        summary: "Retry many channels, or change their delivery",
        description:
          "Each source is a change of its own: one that cannot be changed is listed in `errors`, and the others are changed.",
        body: example.bulk(ids.itemSource),
        answer: Examples.bulk,
        errors: ["DELIVERY_INVALID"]
      })
    ),
    HttpApiEndpoint.post("retry", "/sources/:id/channel-retry", {
      ...one,
      success: ChannelRetry.pipe(HttpApiSchema.status(202))
    }).annotateMerge(
      operation({
        id: "retryChannel",
        permission: administering,
        summary: "Retry the channel of a source",
        description:
          "Creates what is missing at the provider now, without the wait after failures; while polling stands in, instant delivery is tried. A repetition within 10 seconds is the same retry.",
        answer: Examples.retried,
        errors: ["NOT_FOUND", "CHANNEL_POLLING_SOURCE", "SOURCE_DISABLED", "PROVIDER_ACCOUNT_NOT_CONNECTED"]
      })
    ),
    HttpApiEndpoint.get("events", "/sources/:id/channel-events", {
      ...one,
      query: { ...Parameters.onlyTeam, limit: Parameters.clamped(200, 100, "Events that are returned") },
      success: ChannelHistory
    }).annotateMerge(
      operation({
        id: "listChannelEvents",
        permission: read,
        summary: "List what happened to the channel of a source",
        description:
          "Returns the newest events, subscriptions and messages about alerts. They are empty for a source that is no provider source.",
        answer: Examples.history,
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.patch("deliver", "/sources/:id/delivery", {
      ...one,
      payload: DeliveryPatch,
      success: source.record
    }).annotateMerge(operation({ id: "changeDelivery", ...delivery })),
    HttpApiEndpoint.put("deliverByPut", "/sources/:id/delivery", {
      ...one,
      payload: DeliveryPatch,
      success: source.record
    }).annotateMerge(operation({ id: "changeDeliveryByPut", ...delivery })),
    HttpApiEndpoint.post("run", "/sources/:id/run", {
      ...one,
      success: ScheduledRun.pipe(HttpApiSchema.status(202))
    }).annotateMerge(
      operation({
        id: "runSource",
        permission: administering,
        summary: "Poll a provider source now",
        description:
          "The poll begins as soon as the source has time, also for a source with instant delivery. While a requested poll has not begun, a repetition returns that one.",
        answer: Examples.scheduled,
        errors: ["NOT_FOUND", "DELIVERY_DEFINITION_UNAVAILABLE", "SOURCE_DISABLED"]
      })
    ),
    HttpApiEndpoint.get("runs", "/sources/:id/runs", {
      ...one,
      query: Lists.sourceRuns.query,
      success: Lists.sourceRuns.answer(SourceRun)
    }).annotateMerge(
      operation({
        id: "listSourceRuns",
        permission: read,
        summary: "List the polls of a provider source",
        description: "Returns the newest first, in pages by cursor.",
        answer: Lists.sourceRuns.example(Examples.run),
        errors: ["NOT_FOUND", "INVALID_CURSOR"]
      })
    ),
    HttpApiEndpoint.get("activity", "/sources/:id/activity", {
      ...one,
      query: Lists.sourceActivity.query,
      success: Lists.sourceActivity.answer(SourceRun)
    }).annotateMerge(
      operation({
        id: "listSourceActivity",
        permission: read,
        summary: "List the polls of a provider source that matter",
        description:
          "Returns the polls that found something new, and those that failed: the newest first, in pages by cursor.",
        answer: Lists.sourceActivity.example(Examples.run),
        errors: ["NOT_FOUND", "INVALID_CURSOR"]
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({
      title: "Channels",
      description:
        "Provider sources: how their items arrive, whether notifications work, and what to do when they do not."
    })
  ) {}
