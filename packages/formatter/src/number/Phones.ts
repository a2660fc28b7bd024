import type { CountryCode, PhoneNumber } from "libphonenumber-js/max"
import { tooMuch } from "../engine/Fault.ts"
import { type Library, phoneMetadata, phoneNumbers, phones } from "../engine/Libraries.ts"
import type { Call } from "../engine/Operation.ts"

/** Phone numbers, by the metadata that all telephones share. A region is one of those that a step may name. */

export const phoneLibraries: ReadonlyArray<Library> = [phoneNumbers, phones]

/** The number of a `tel:` URI (RFC 3966): its digits, behind those of its context, and its extension. Any other text as it is. */
const plainOf = (text: string): string => {
  const [, digits, parameters = ""] = /^\s*tel:([^;]*)((?:;[^;]*)*)$/i.exec(text) ?? []
  if (digits === undefined) return text
  const valueOf = (name: string): string | undefined =>
    new RegExp(`;${name}=([^;]*)`, "i").exec(parameters)?.[1]?.trim()
  const [context, extension] = [valueOf("phone-context"), valueOf("ext")]
  const isLocal = !digits.trim().startsWith("+") && context?.startsWith("+") === true
  return `${isLocal ? context : ""}${digits}${extension === undefined ? "" : ` ext. ${extension}`}`
}

export const phoneOf = (text: string, region: string): PhoneNumber | null =>
  phones().parsePhoneNumberFromString(plainOf(text), { defaultCountry: region as CountryCode, extract: false }) ?? null

/** Characters of a stretch of a text that may be one phone number after the other. */
export const maxStretch = 8192

/** What the library takes for a number in one stretch and finds that it is none, some 20 µs each. Of what people write it is one in six characters. */
export const maxTries = 1500

/** Digits that stand so far from each other, or on two lines, are never of one number. */
const apart = 32

/** Where phone numbers may stand: digits, and what is between and just beside them. */
const stretchesOf = (text: string): ReadonlyArray<readonly [from: number, to: number]> => {
  const stretches: Array<[from: number, to: number, digits: number]> = []
  let end = -apart
  for (const { 0: digits, index } of text.matchAll(/\p{Nd}+/gu)) {
    const last = stretches.at(-1)
    if (last === undefined || index - end >= apart || /[\n\r]/.test(text.slice(end, index))) {
      stretches.push([Math.max(end, index - 8, 0), index + digits.length, digits.length])
    } else {
      last[1] = index + digits.length
      last[2] += digits.length
    }
    end = index + digits.length
  }
  // No country has shorter numbers.
  return stretches.flatMap(([from, to, digits]) => (digits < 4 ? [] : [[from, Math.min(to + 2, text.length)] as const]))
}

export interface FoundPhone {
  readonly text: string
  readonly number: PhoneNumber
}

/**
 * The phone numbers in a text that are `wanted`, and no more than are asked for. The library tries every stretch of digits in every way: 3 µs a character of digits
 * and spaces, and as much as five times that where each of them could begin a number.
 */
export function* phonesIn(
  text: string,
  region: string,
  wanted: (found: FoundPhone) => boolean,
  most: number,
  call: Call
): Generator<void, ReadonlyArray<FoundPhone>, void> {
  const found: Array<FoundPhone> = []
  for (const [from, to] of stretchesOf(text)) {
    if (to - from > maxStretch)
      throw tooMuch("there are too many digits beside each other", maxStretch, to - from, "input")
    call.spend(20 + (to - from) * 4)
    const stretch = text.slice(from, to)
    const options = { defaultCountry: region as CountryCode, v2: true, maxTries: maxTries + 1 } as const
    const matcher = new (phones().PhoneNumberMatcher)(stretch, options)
    while (matcher.hasNext()) {
      const { endsAt, number, startsAt } = matcher.next()!
      const one = { text: stretch.slice(startsAt, endsAt), number }
      if (wanted(one)) found.push(one)
    }
    // What is left of them, which the library's types leave out.
    if ((matcher as unknown as { readonly maxTries: number }).maxTries <= 0)
      throw tooMuch("too much looks like a phone number and is none", maxTries, maxTries + 1, "input")
    if (found.length >= most) break
    yield
  }
  return found
}

/** How a number is written within its country by the format that the metadata has for calls from abroad, its own separators kept. */
const ungrouped = (number: PhoneNumber): string => {
  const metadata = phoneMetadata(number)
  metadata.selectNumberingPlan(number.countryCallingCode)
  const digits = number.nationalNumber
  const format = metadata.numberingPlan?.formats().find((one) => {
    const leading = one.leadingDigitsPatterns()
    const begins = leading.length === 0 || new RegExp(`^(?:${leading.at(-1)})`).test(digits)
    return begins && new RegExp(`^(?:${one.pattern()})$`).test(digits)
  })
  return format === undefined
    ? digits
    : digits.replace(new RegExp(`^(?:${format.pattern()})$`), format.internationalFormat())
}

const extension = ({ ext }: PhoneNumber): string => (ext === undefined || ext === "" ? "" : ` ext. ${ext}`)

/** How each of the formats writes a number. */
export const phoneFormats: Readonly<Record<string, (number: PhoneNumber) => string>> = {
  "0": (number) => number.number,
  "1": (number) => `+${number.countryCallingCode} ${ungrouped(number)}${extension(number)}`,
  "2": (number) => number.formatNational(),
  "3": (number) => {
    const { ext } = number
    const digits = `+${number.countryCallingCode}-${ungrouped(number).replaceAll(/[^\d]+/g, "-")}`
    return ext === undefined || ext === "" ? digits : `${digits};ext=${ext}`
  },
  "4": (number) => `${ungrouped(number)}${extension(number)}`,
  "5": (number) => number.formatInternational(),
  "6": (number) => number.formatNational().replaceAll(/[()]/g, ""),
  // As it is dialled within the country, with the zero that begins it in most.
  "7": (number) =>
    number
      .formatNational()
      .replace(/ ext\..*$/, "")
      .replaceAll(/\D/g, ""),
  "8": (number) => `${number.countryCallingCode}${number.nationalNumber}`
}
