import { filter } from "@tidegate/resources/Filter"
import { protocolOf } from "../Protocol.ts"

/** The messages to a stored filter: the commands of any resource. */
export const FilterEntity = protocolOf(filter)
