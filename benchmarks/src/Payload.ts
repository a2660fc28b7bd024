/**
 * The 1 KB JSON body of every benchmark request, and the clock of its send time.
 *
 * The values that a target needs are at fixed offsets at the start of the body. So the target reads a few digits and parses no
 * JSON, while a gateway sees an ordinary JSON document. The values are strings, because JSON allows no leading zeros in numbers,
 * and these keep the offsets fixed.
 */

/** Length of every body in bytes. */
export const PAYLOAD_BYTES = 1024

const SENT_AT = { offset: '{"sent_at":"'.length, digits: 16 }
const RUN = { offset: SENT_AT.offset + SENT_AT.digits + '","run":"'.length, digits: 4 }
const SEQUENCE = { offset: RUN.offset + RUN.digits + '","sequence":"'.length, digits: 8 }
const ORDER = '","type":"order.created","amount":4200,"currency":"EUR","customer":{"id":"cus_'
const CUSTOMER = { offset: SEQUENCE.offset + SEQUENCE.digits + ORDER.length, digits: 6 }

/** The bytes at the start of a body that `readStamp` needs. */
export const STAMP_BYTES = CUSTOMER.offset + CUSTOMER.digits

const template = (() => {
  const zeros = (field: { readonly digits: number }) => "0".repeat(field.digits)
  const head = `{"sent_at":"${zeros(SENT_AT)}","run":"${zeros(RUN)}","sequence":"${zeros(SEQUENCE)}`
  const order =
    `${ORDER}${zeros(CUSTOMER)}","email":"buyer@example.com",` +
    `"country":"DE"},"items":[{"sku":"A-100","quantity":2,"price":1500},{"sku":"B-200","quantity":1,"price":1200}],`
  const open = `${head}${order}"note":"`
  return Buffer.from(`${open}${"x".repeat(PAYLOAD_BYTES - open.length - 2)}"}`, "latin1")
})()

/**
 * Microseconds of the machine's monotonic clock. Unlike the wall clock it never jumps. Unlike `performance.now` it has the same
 * origin in every process, so the target can compare a time that the generator has written.
 */
export const nowMicros = (): number => {
  const [seconds, nanos] = process.hrtime()
  return seconds * 1_000_000 + Math.floor(nanos / 1_000)
}

/**
 * The facts in a body about its sending: the intended send time in microseconds, its run, its number in the run, and its customer
 * (`body.customer.id`).
 */
export interface Stamp {
  readonly sentAt: number
  readonly run: number
  readonly sequence: number
  readonly customer: number
}

const write = (bytes: Uint8Array, field: { readonly offset: number; readonly digits: number }, value: number): void => {
  let rest = value
  for (let at = field.offset + field.digits - 1; at >= field.offset; at--) {
    const next = Math.floor(rest / 10)
    bytes[at] = rest - next * 10 + 48
    rest = next
  }
}

const read = (bytes: Uint8Array, field: { readonly offset: number; readonly digits: number }): number => {
  let value = 0
  for (let at = field.offset; at < field.offset + field.digits; at++) value = value * 10 + (bytes[at]! - 48)
  return value
}

/** A new body of `PAYLOAD_BYTES` bytes with this stamp. */
export const makePayload = (stamp: Stamp): Buffer => {
  const bytes = Buffer.allocUnsafe(PAYLOAD_BYTES)
  template.copy(bytes)
  write(bytes, SENT_AT, stamp.sentAt)
  write(bytes, RUN, stamp.run)
  write(bytes, SEQUENCE, stamp.sequence)
  write(bytes, CUSTOMER, stamp.customer)
  return bytes
}

/**
 * Reads the stamp from a body's first `STAMP_BYTES` bytes. `undefined`: they are not the start of a benchmark payload, so the
 * target counts a changed body.
 */
export const readStamp = (bytes: Uint8Array): Stamp | undefined => {
  const sentAt = read(bytes, SENT_AT)
  const run = read(bytes, RUN)
  const sequence = read(bytes, SEQUENCE)
  const customer = read(bytes, CUSTOMER)
  return bytes[0] === 123 && sentAt >= 0 && run >= 0 && sequence >= 0 && customer >= 0
    ? { sentAt, run, sequence, customer }
    : undefined
}
