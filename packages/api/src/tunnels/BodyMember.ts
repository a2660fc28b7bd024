import { isUtf8 } from "node:buffer"

/** A larger body is sent in base64, text or not: JSON escapes would block the event loop. */
const largestText = 256 * 1024

/** The body of a delivery as a member of the JSON text that contains the rest. */
export const bodyMember = (body: Uint8Array): string => {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  return bytes.length <= largestText && isUtf8(bytes)
    ? `"body":${JSON.stringify(bytes.toString("utf8"))}`
    : `"body_base64":"${bytes.toString("base64")}"`
}
