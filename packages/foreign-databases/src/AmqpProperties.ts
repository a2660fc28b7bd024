import type { AmqpMessage } from "@tidegate/connectors/Brokers"
import type { Received } from "@tidegate/connectors/Subscriptions"
import { longestValue, mostHeaders } from "./Consumer.ts"
import { octet, short, shortText, table, Values } from "./AmqpFrames.ts"

/** Which properties a message has: these bits, and the values in the order of the bits. */
const contentTypeBit = 0x8000
const contentEncodingBit = 0x4000
const headersBit = 0x2000
const deliveryModeBit = 0x1000
const priorityBit = 0x0800
const correlationIdBit = 0x0400
const replyToBit = 0x0200
const expirationBit = 0x0100
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

/** The value of a header, as text; null: it is none, or is too long. Every kind has to be read, because the next value follows. */
const headerValue = (values: Values): string | null => {
  const kind = String.fromCharCode(values.octet())
  switch (kind) {
    case "S": {
      const text = values.longText("utf8")
      return text.length <= longestValue ? text : null
    }
    case "t":
      return String(values.octet() !== 0)
    case "b":
      return String(values.signed(1))
    case "B":
      return String(values.octet())
    case "s":
    case "U":
      return String(values.signed(2))
    case "u":
      return String(values.short())
    case "I":
      return String(values.signed(4))
    case "i":
      return String(values.long())
    case "l":
    case "L":
    case "T":
      return String(values.signedLong())
    case "f":
      return String(values.float())
    case "d":
      return String(values.double())
    case "D":
      values.skip(5)
      return null
    case "A":
    case "F":
    case "x":
      values.skipTable()
      return null
    case "V":
      return null
    default:
      throw new RangeError("a header has no kind of value that there is")
  }
}

const headersIn = (values: Values): Received["headers"] => {
  const headers: Array<readonly [string, string]> = []
  while (!values.isAtEnd) {
    const name = values.shortText()
    const value = headerValue(values)
    if (value !== null && headers.length < mostHeaders) headers.push([name, value])
  }
  return headers
}

/** What the header frame of a delivered message says. */
export const messageIn = (
  header: Buffer
): Pick<Received, "contentEncoding" | "contentType" | "headers" | "id" | "size"> => {
  const values = new Values(header)
  values.long()
  const size = values.longLong()
  const bits = values.short()
  const has = (bit: number): boolean => (bits & bit) !== 0
  const contentType = has(contentTypeBit) ? values.shortText() : null
  const contentEncoding = has(contentEncodingBit) ? values.shortText() : null
  const headers = has(headersBit) ? headersIn(values.part()) : []
  if (has(deliveryModeBit)) values.octet()
  if (has(priorityBit)) values.octet()
  for (const bit of [correlationIdBit, replyToBit, expirationBit]) if (has(bit)) values.shortText()
  const id = has(messageIdBit) ? values.shortText() : ""
  return { size, contentType, contentEncoding, headers, id: id === "" ? null : id }
}
