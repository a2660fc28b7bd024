import { newRequest } from "@tidegate/entities/Connection/PendingRequest"
import { horizonMs, newItem, payloadOf } from "@tidegate/entities/Destination/queue/DeliveryItem"

import type { Dispatcher } from "@tidegate/entities/dispatch/Dispatcher"
import type { Decision } from "../Routing.ts"

/** Wakes the actors that have work by a committed request: its connections, workflows and destinations. */
export const wakeActors = (dispatcher: Dispatcher["Service"], { input, record, request }: Decision): void => {
  if (record.pending.length > 0) {
    const pending = newRequest(record, request, input())
    for (const { connectionId, ordering } of record.pending) {
      // Events with an ordering key are read from SQL in their order.
      if (ordering === null) dispatcher.route(connectionId, pending)
      else dispatcher.wake(connectionId)
    }
  }
  for (const { workflowId } of record.runs) dispatcher.run(workflowId)
  for (const { workflowId } of record.awaiting ?? []) dispatcher.arrive(workflowId)
  if (record.events.length === 0) return
  const payload = payloadOf(request, record)
  const soon = record.ingestedAt + horizonMs
  for (const event of record.events) {
    if (event.dueAt > soon) continue
    dispatcher.deliver(event.destinationId, newItem(event, record, record.ingestedAt, payload))
  }
}
