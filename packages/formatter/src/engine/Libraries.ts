import { createRequire } from "node:module"
import type { LinkifyIt } from "linkify-it"

/**
 * The libraries of operations, each loaded when it is first needed: together they take 100 ms and 30 MB, which a gateway that formats nothing
 * saves. They are loaded by `require` instead of `import()`, because an operation runs synchronously.
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

/** The phone number metadata: half of the loading time of the next library. */
export const phoneNumbers = once(() => load("libphonenumber-js/metadata.max.json") as unknown)
export const phones = once(() => load("libphonenumber-js/max") as typeof import("libphonenumber-js/max"))
/** The part of the library's metadata about number formats that its types omit. */
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
export const markdownIt = once(() => load("markdown-it") as typeof import("markdown-it").default)
export const htmlparser = once(() => load("htmlparser2") as typeof import("htmlparser2"))
/** Words for which the library's rules are wrong, with the plural from dictionaries. */
const plurals = (
  "abdomen abdomens, agenda agendas, allegro allegros, bias biases, blitz blitzes, brahman brahmans, caiman caimans, canvas canvases, cargo cargoes, " +
  "catharsis catharses, cookie cookies, czech czechs, ditz ditzes, doberman dobermans, domino dominoes, dormouse dormice, embargo embargoes, " +
  "epoch epochs, eunuch eunuchs, eyetooth eyeteeth, fez fezzes, forefoot forefeet, gateau gateaux, german germans, graffito graffiti, gulf gulfs, " +
  "helix helices, klutz klutzes, larva larvae, lens lenses, mango mangoes, mantis mantises, matriarch matriarchs, metropolis metropolises, " +
  "mosquito mosquitoes, nemesis nemeses, norman normans, oasis oases, oligarch oligarchs, omen omens, ottoman ottomans, pancreas pancreases, " +
  "patriarch patriarchs, pelvis pelvises, penis penises, quartz quartzes, regimen regimens, rhinoceros rhinoceroses, roman romans, schema schemas, " +
  "shaman shamans, specimen specimens, stamen stamens, stomach stomachs, tableau tableaux, talisman talismans, thermos thermoses, topaz topazes, " +
  "trellis trellises, veto vetoes, virus viruses, waltz waltzes, whiz whizzes, woodlouse woodlice"
)
  .split(", ")
  .map((pair) => pair.split(" ") as [one: string, many: string])

/** Compound words whose first part is in the plural. */
const headed = (
  "attorney-general brother-in-law commander-in-chief court-martial daughter-in-law editor-in-chief father-in-law hanger-on looker-on man-of-war " +
  "mother-in-law passer-by runner-up secretary-general sister-in-law son-in-law"
)
  .split(" ")
  .map((one) => [one, one.replace(/^[a-z]+/, (head) => (head === "man" ? "men" : `${head}s`))] as const)

const uncountable =
  "asbestos chaos cosmos electricity ethos evidence feedback furniture golf hovercraft knowledge luggage offspring pathos progress spacecraft tennis watercraft weather"

export const pluralize = once(() => {
  const library = load("pluralize") as typeof import("pluralize")
  for (const [one, many] of [...plurals, ...headed]) library.addIrregularRule(one, many)
  for (const word of uncountable.split(" ")) library.addUncountableRule(word)
  return library
})
export const anyAscii = once(() => (load("any-ascii") as typeof import("any-ascii")).default)
/**
 * Finds the same addresses, but faster: an address after `//` that is refused because of the characters before it is refused first. The
 * library would read the whole address each time.
 */
export const refusingFirst = (linkify: LinkifyIt): LinkifyIt =>
  linkify.add("//", {
    validate: (text, at, { re }) => {
      if (at >= 3 && /[:/]/.test(text[at - 3]!)) return 0
      const address = re.get_relative_proto_validator()
      address.lastIndex = at
      return address.exec(text)?.[0].length ?? 0
    }
  })
/** All top-level domains. */
const topLevelDomains = once(() => load("tlds") as typeof import("tlds"))

/**
 * Finds URLs in prose: with credentials, with underscores in host names, and without a scheme for any top-level domain, with or without a
 * port.
 */
export const linkify = once(() => {
  const { LinkifyIt, REBuilder } = load("linkify-it") as typeof import("linkify-it")
  class AsWritten extends REBuilder {
    override get_domain(): RegExp {
      const letter = `(?:_|${this.get_pseudo_letter().source})`
      return (this.cache["src_domain"] ??= new RegExp(
        `(?:${this.get_xn().source}|${letter}|(?:${letter}(?:-|${letter}){0,61}${letter}))`
      ))
    }
    override get_fuzzy_url_host_port(): RegExp {
      return (this.cache["fuzzy_url_host_port"] ??= new RegExp(
        `(?:(?:${this.get_domain().source})\\.){1,10}(?:${this.get_tld().source})${this.get_port().source}${this.get_host_terminator().source}`
      ))
    }
  }
  const tlds = topLevelDomains().map((one) => one.replaceAll(/[^\p{L}\p{N}-]/gu, ""))
  return refusingFirst(new LinkifyIt({ fuzzyLink: true, urlAuth: true, tlds, rebuilder: new AsWritten() }))
})
export const decimal = once(() => {
  const { Decimal } = load("decimal.js") as typeof import("decimal.js")
  // The precision that the formula language documents. The exponents exceed any result that is allowed.
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
