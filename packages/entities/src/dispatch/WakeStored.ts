import { type MessageHead, messageHead } from "@tidegate/model/Message"
import { requestInput, type RequestInput } from "@tidegate/rules/RequestInput"
import type { RequestRecord } from "@tidegate/storage/journal/RequestRecord"
import { newRequest } from "../Connection/PendingRequest.ts"
import { horizonMs, newItem, payloadOf } from "../Destination/queue/DeliveryItem.ts"
import type { Dispatcher } from "./Dispatcher.ts"

const noBody = new Uint8Array(0)

/**
 * Wakes the actors that have work by a request that has just been committed: its connections, workflows and destinations. `head` and
 * `input`: the request as it was parsed; without them it is parsed from the record.
 */
export const wakeStored = (
  dispatcher: Dispatcher["Service"],
  record: RequestRecord,
  head: MessageHead = messageHead(record),
  input: () => RequestInput = () => requestInput(head, record.body ?? noBody)
): void => {
  if (record.pending.length > 0) {
    const pending = newRequest(record, head, input())
    for (const { connectionId, ordering } of record.pending) {
      // Events with an ordering key are read from SQL in their order.
      if (ordering === null) dispatcher.route(connectionId, pending)
      else dispatcher.wake(connectionId)
    }
  }
  for (const { workflowId } of record.runs) dispatcher.run(workflowId)
  for (const { workflowId } of record.awaiting ?? []) dispatcher.arrive(workflowId)
  if (record.events.length === 0) return
  const payload = payloadOf(head, record)
  const soon = record.ingestedAt + horizonMs
  for (const event of record.events) {
    if (event.dueAt > soon) continue
    dispatcher.deliver(event.destinationId, newItem(event, record, record.ingestedAt, payload))
  }
}
