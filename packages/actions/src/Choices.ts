import type { Choice } from "@tidegate/model/ActionCatalog"

/** Choices for inputs that are the same for every team. They are not stored. */

type List = () => ReadonlyArray<Choice>

const byName = (choices: ReadonlyArray<Choice>): ReadonlyArray<Choice> =>
  choices.toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))

const letters = "abcdefghijklmnopqrstuvwxyz".split("")
const pairs = letters.flatMap((first) => letters.map((second) => first + second))

/** The ids that have an English name. */
const named = (type: "currency" | "region" | "language", ids: ReadonlyArray<string>): ReadonlyArray<Choice> => {
  const names = new Intl.DisplayNames("en", { type, fallback: "none" })
  return byName(
    ids.flatMap((id) => {
      const name = names.of(id)
      return name === undefined ? [] : [{ id, name, description: null }]
    })
  )
}

const once = (make: List): List => {
  let made: ReadonlyArray<Choice> | undefined
  return () => (made ??= make())
}

/** By provider and resource. */
export const fixedChoices: Readonly<Record<string, Readonly<Record<string, List>>>> = {
  formatter: {
    time_zones: once(() =>
      byName(["UTC", ...Intl.supportedValuesOf("timeZone")].map((id) => ({ id, name: id, description: null })))
    ),
    currencies: once(() => named("currency", Intl.supportedValuesOf("currency"))),
    countries: once(() =>
      named(
        "region",
        pairs.map((pair) => pair.toUpperCase())
      )
    ),
    locales: once(() =>
      named(
        "language",
        pairs.filter((pair) => Intl.NumberFormat.supportedLocalesOf(pair).length > 0)
      )
    )
  }
}
