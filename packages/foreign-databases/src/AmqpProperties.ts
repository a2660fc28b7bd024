import type { AmqpMessage } from "@tidegate/connectors/Brokers"
import { octet, short, shortText, table, Values } from "./AmqpFrames.ts"

/** Which properties a message has: these bits, and the values in the order of the bits. */
const contentTypeBit = 0x8000
const contentEncodingBit = 0x4000
const headersBit = 0x2000
const deliveryModeBit = 0x1000
const messageIdBit = 0x0080

export const propertiesOf = ({ contentEncoding, contentType, headers, id, persistent }: AmqpMessage): Buffer =>
  Buffer.concat([
    short(
      (contentType === null ? 0 : contentTypeBit) +
        (contentEncoding === null ? 0 : contentEncodingBit) +
        headersBit +
        deliveryModeBit +
        messageIdBit
    ),
    ...(contentType === null ? [] : [shortText(contentType)]),
    ...(contentEncoding === null ? [] : [shortText(contentEncoding)]),
    table(headers),
    octet(persistent ? 2 : 1),
    shortText(id)
  ])

/** The id of a returned message, from its header frame. */
export const idIn = (header: Buffer): string => {
  const values = new Values(header)
  values.long()
  values.longLong()
  const bits = values.short()
  if ((bits & contentTypeBit) !== 0) values.shortText()
  if ((bits & contentEncodingBit) !== 0) values.shortText()
  if ((bits & headersBit) !== 0) values.skipTable()
  if ((bits & deliveryModeBit) !== 0) values.octet()
  return values.shortText()
}
