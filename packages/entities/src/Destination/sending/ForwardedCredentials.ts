import { carriesMask, restoreOthers, restorePresented, withoutPresented } from "@tidegate/verification/PresentedSecrets"
import { openPresented } from "@tidegate/storage/secrets/PresentedColumn"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import type { DeliveryItem, DeliveryPayload } from "../queue/DeliveryItem.ts"

/**
 * Whether what senders presented is forwarded, left out, or stays masked. `forward-others`: without what the source itself
 * verifies by.
 */
export type Credentials = "forward" | "forward-others" | "omit" | "mask"

/**
 * The request of an event as its destination gets it: here alone the credentials that the sender presented are opened.
 *
 * Null when they cannot be, because their key is gone. Fails closed: a target would take a mask for a wrong credential, or
 * accept a request for want of one. The attempt fails and the retry rule decides, so that putting the key back helps.
 */
export const withCredentials = (
  secrets: Secrets["Service"],
  credentials: Credentials,
  { payload, teamId }: DeliveryItem
): DeliveryPayload | null => {
  const { presented, requestId } = payload
  if (presented === null || credentials === "mask") return payload
  if (credentials === "omit") return withoutPresented(payload)
  // A transformation may have taken them out: then there is nothing to open.
  if (!carriesMask(payload)) return payload
  const opened = openPresented(secrets, { team_id: teamId, id: requestId }, presented)
  if (opened === null) return null
  return credentials === "forward" ? restorePresented(payload, opened) : restoreOthers(payload, opened)
}
