import { action } from "@tidegate/resources/Action"
import { protocolOf } from "../Protocol.ts"

/** What a saved action is sent: the commands of any resource. */
export const ActionEntity = protocolOf(action)
