import { filter } from "@tidegate/resources/Filter"
import { protocolOf } from "../Protocol.ts"

/** What a stored filter is sent: the commands of any resource. */
export const FilterEntity = protocolOf(filter)
