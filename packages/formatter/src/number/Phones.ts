import type { CountryCode, PhoneNumber } from "libphonenumber-js/max"
import { type Library, phoneMetadata, phoneNumbers, phones } from "../engine/Libraries.ts"

/** Phone numbers, by the metadata that all telephones share. A region is one of those that a step may name. */

export const phoneLibraries: ReadonlyArray<Library> = [phoneNumbers, phones]

export const phoneOf = (text: string, region: string): PhoneNumber | null =>
  phones().parsePhoneNumberFromString(text, { defaultCountry: region as CountryCode, extract: false }) ?? null

export const phonesIn = (
  text: string,
  region: string
): ReadonlyArray<{ readonly text: string; readonly number: PhoneNumber }> =>
  phones()
    .findPhoneNumbersInText(text, { defaultCountry: region as CountryCode })
    .map(({ endsAt, number, startsAt }) => ({ text: text.slice(startsAt, endsAt), number }))

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
  "7": (number) => number.nationalNumber,
  "8": (number) => `${number.countryCallingCode}${number.nationalNumber}`
}
