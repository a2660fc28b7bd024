import type { CountryCode, PhoneNumber } from "libphonenumber-js/max"
import { tooMuch } from "../engine/Fault.ts"
import { type Library, phoneMetadata, phoneNumbers, phones } from "../engine/Libraries.ts"
import type { Call } from "../engine/Operation.ts"

/** Phone numbers, by the worldwide metadata of the library. A region is one that a step may name. */

export const phoneLibraries: ReadonlyArray<Library> = [phoneNumbers, phones]

/** The number of a `tel:` URI (RFC 3966): context, digits and extension. Any other text is returned unchanged. */
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

/** Maximum characters of a section that may consist of phone numbers. */
export const maxStretch = 8192

/**
 * Maximum number of candidates in one section that turn out to be no phone number; each takes about 20 µs. In normal text there is one for six
 * characters.
 */
export const maxTries = 1500

/** Digits this far apart, or on different lines, never belong to one number. */
const apart = 32

/** The sections that may contain phone numbers: digits, and the text between and next to them. */
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
 * The phone numbers in a text that pass `wanted`; the search ends after a section once `most` are found. The library tries all combinations of
 * digits: 3 µs for each character of digits and spaces, and up to five times that if every digit can begin a number.
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
    // The remaining candidates, which the library's types omit.
    if ((matcher as unknown as { readonly maxTries: number }).maxTries <= 0)
      throw tooMuch("too much looks like a phone number and is none", maxTries, maxTries + 1, "input")
    if (found.length >= most) break
    yield
  }
  return found
}

/** The national digits, grouped like the international format, with its separators. */
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

/** The functions of the formats, by their numbers. */
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
  // As dialled within the country, in most countries with a leading zero.
  "7": (number) =>
    number
      .formatNational()
      .replace(/ ext\..*$/, "")
      .replaceAll(/\D/g, ""),
  "8": (number) => `${number.countryCallingCode}${number.nationalNumber}`
}
