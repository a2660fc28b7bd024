import { createRequire } from "node:module"
import type { LinkifyIt } from "linkify-it"

/**
 * The libraries that the operations use, each loaded when an operation that needs it runs for the first time: together they are 100 ms and
 * 30 MB that a gateway which formats nothing does not spend. `require` and not `import()`: an operation runs in one go, without waiting.
 */
const load = createRequire(import.meta.url)

export interface Library<A = unknown> {
  (): A
  readonly isLoaded: () => boolean
}

const once = <A>(read: () => A): Library<A> => {
  let loaded: { readonly library: A } | null = null
  return Object.assign(() => (loaded ??= { library: read() }).library, { isLoaded: () => loaded !== null })
}

/** What all telephones share: half of what it takes to load the next one. */
export const phoneNumbers = once(() => load("libphonenumber-js/metadata.max.json") as unknown)
export const phones = once(() => load("libphonenumber-js/max") as typeof import("libphonenumber-js/max"))
/** What the library has of a country's ways to write numbers, which its types leave out. */
export interface NumberingPlans {
  readonly selectNumberingPlan: (callingCode: string) => void
  readonly numberingPlan?: {
    readonly formats: () => ReadonlyArray<{
      readonly leadingDigitsPatterns: () => ReadonlyArray<string>
      readonly pattern: () => string
      readonly internationalFormat: () => string
    }>
  }
}

const plans = once(
  () => (load("libphonenumber-js/core") as { readonly Metadata: new (metadata: unknown) => NumberingPlans }).Metadata
)
export const phoneMetadata = (number: object): NumberingPlans =>
  new (plans())((number as { readonly getMetadata: () => unknown }).getMetadata())

export const phoneVersion = once(() => (load("libphonenumber-js/package.json") as { readonly version: string }).version)
export const chrono = once(() => load("chrono-node/en") as typeof import("chrono-node/en"))
export const markdownIt = once(() => load("markdown-it") as typeof import("markdown-it").default)
export const turndown = once(() => load("turndown") as typeof import("turndown"))
export const htmlparser = once(() => load("htmlparser2") as typeof import("htmlparser2"))
export const pluralize = once(() => load("pluralize") as typeof import("pluralize"))
export const anyAscii = once(() => (load("any-ascii") as typeof import("any-ascii")).default)
/** What is found stays the same: an address behind `//` is refused for what stands before it, and the library reads all of it first, each time. */
export const refusingFirst = (linkify: LinkifyIt): LinkifyIt =>
  linkify.add("//", {
    validate: (text, at, { re }) => {
      if (at >= 3 && /[:/]/.test(text[at - 3]!)) return 0
      const address = re.get_relative_proto_validator()
      address.lastIndex = at
      return address.exec(text)?.[0].length ?? 0
    }
  })
export const linkify = once(() => {
  const { LinkifyIt } = load("linkify-it") as typeof import("linkify-it")
  return refusingFirst(new LinkifyIt({ fuzzyLink: true }))
})
export const decimal = once(() => {
  const { Decimal } = load("decimal.js") as typeof import("decimal.js")
  // Digits as the formula language states them; exponents far beyond what a result may have.
  return Decimal.clone({
    precision: 28,
    rounding: Decimal.ROUND_HALF_UP,
    minE: -5000,
    maxE: 5000,
    toExpNeg: -400,
    toExpPos: 400
  })
})
export const re2 = once(() => load("re2js") as typeof import("re2js"))
