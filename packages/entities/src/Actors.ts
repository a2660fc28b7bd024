import { Effect, Layer } from "effect"
import { Journal } from "@tidegate/storage/Journal"
import { RunJournal } from "@tidegate/storage/workflows/RunJournal"
import * as Alarms from "./Alarms/Alarms.ts"
import * as AlertDelivery from "./Alerts/AlertDelivery.ts"
import { ProviderCalls } from "./accounts/ProviderCalls.ts"
import * as ActionBehaviour from "./Action/ActionBehaviour.ts"
import * as BulkOperationBehaviour from "./BulkOperation/BulkOperationBehaviour.ts"
import * as ChannelBehaviour from "./Channel/ChannelBehaviour.ts"
import { Cancellations } from "./Cancellations.ts"
import * as CommitsBehaviour from "./commits/CommitsBehaviour.ts"
import * as Forwarding from "./commits/Forwarding.ts"
import * as ConnectionBehaviour from "./Connection/ConnectionBehaviour.ts"
import { DeliveryRuntime } from "./Destination/sending/DeliveryRuntime.ts"
import * as DataDeletions from "./DataDeletions.ts"
import * as DestinationBehaviour from "./Destination/DestinationBehaviour.ts"
import * as FilterBehaviour from "./Filter/FilterBehaviour.ts"
import * as HandoverBehaviour from "./dispatch/HandoverBehaviour.ts"
import { Dispatcher } from "./dispatch/Dispatcher.ts"
import * as InHand from "./InHand.ts"
import * as KeyLimitBehaviour from "./KeyLimit/KeyLimitBehaviour.ts"
import * as Retention from "./Retention.ts"
import * as ScheduledSources from "./Source/ScheduledSources.ts"
import * as SourceBehaviour from "./Source/SourceBehaviour.ts"
import * as SubscriptionBehaviour from "./Subscription/SubscriptionBehaviour.ts"
import * as SubscriptionLooks from "./Subscription/SubscriptionLooks.ts"
import * as TeamDeletions from "./TeamDeletions.ts"
import * as Poller from "./dispatch/Poller.ts"
import * as TransformationBehaviour from "./Transformation/TransformationBehaviour.ts"
import * as StepEffects from "./Workflow/effects/StepEffects.ts"
import { Pace, RunPace } from "./Workflow/RunPace.ts"
import * as ScheduleTicks from "./Workflow/ScheduleTicks.ts"
import * as WorkflowBehaviour from "./Workflow/WorkflowBehaviour.ts"

/**
 * The actors of this process's shards and the poller that wakes them; retention, deletions of teams and of data, schedules, the alarms and the
 * delivery of alerts on one of the processes.
 */
export const layer = (
  limits: Parameters<typeof DeliveryRuntime.layer>[0],
  retention: Parameters<typeof Retention.layer>[0]
) =>
  Layer.mergeAll(
    ActionBehaviour.layer,
    FilterBehaviour.layer,
    SourceBehaviour.layer,
    ConnectionBehaviour.layer,
    DestinationBehaviour.layer,
    HandoverBehaviour.layer,
    CommitsBehaviour.layer,
    Forwarding.layer,
    TransformationBehaviour.layer,
    WorkflowBehaviour.layer,
    BulkOperationBehaviour.layer,
    KeyLimitBehaviour.layer,
    ChannelBehaviour.layer,
    SubscriptionBehaviour.layer,
    SubscriptionLooks.layer,
    Poller.layer,
    Alarms.layer,
    AlertDelivery.layer,
    ScheduleTicks.layer,
    ScheduledSources.layer,
    TeamDeletions.layer,
    DataDeletions.layer,
    Retention.layer(retention)
  ).pipe(
    Layer.provide([
      Cancellations.layer,
      DeliveryRuntime.layer(limits),
      Dispatcher.layer,
      // Before any actor, so that the work that dead processes left is known.
      InHand.layer,
      RunJournal.layer,
      Layer.effect(
        Pace,
        Effect.map(Journal, ({ isSlow }) => new RunPace(isSlow))
      ),
      StepEffects.layer,
      ProviderCalls.layer
    ])
  )
