import type { Schema } from "effect"
import { runToEnd } from "@tidegate/runtime/Resumable"
import type { Adapter, CallbackMessage, Notification, Subscription } from "../src/Adapter.ts"

/** What an adapter reads in a callback, all of it at once. */
export const receive = (
  { receive }: Pick<Adapter, "receive">,
  subscription: Subscription,
  inputs: Schema.JsonObject,
  message: CallbackMessage
): Notification => {
  const received = receive(subscription, inputs, message)
  return "kind" in received ? received : runToEnd(received)
}
