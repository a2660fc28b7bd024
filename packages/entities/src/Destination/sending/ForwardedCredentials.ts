import { carriesMask, restoreOthers, restorePresented, withoutPresented } from "@tidegate/verification/PresentedSecrets"
import { openPresented } from "@tidegate/storage/secrets/PresentedColumn"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import type { DeliveryItem, DeliveryPayload } from "../queue/DeliveryItem.ts"

/**
 * Whether the credentials that senders presented are forwarded, left out, or stay masked. `forward-others`: forwarded, except
 * those that the source itself verifies.
 */
export type Credentials = "forward" | "forward-others" | "omit" | "mask"

/**
 * The request of an event as its destination gets it. Only here the credentials that the sender presented are decrypted.
 *
 * Null when they cannot be decrypted, because their key is gone. Fails closed: a target would take a mask for a wrong credential,
 * or might accept a request without one. The attempt fails and the retry rule applies, so later attempts succeed once the key is
 * back.
 */
export const withCredentials = (
  secrets: Secrets["Service"],
  credentials: Credentials,
  { payload, teamId }: DeliveryItem
): DeliveryPayload | null => {
  const { presented, requestId } = payload
  if (presented === null || credentials === "mask") return payload
  if (credentials === "omit") return withoutPresented(payload)
  // A transformation may have removed them: then there is nothing to decrypt.
  if (!carriesMask(payload)) return payload
  const opened = openPresented(secrets, { team_id: teamId, id: requestId }, presented)
  if (opened === null) return null
  return credentials === "forward" ? restorePresented(payload, opened) : restoreOthers(payload, opened)
}
