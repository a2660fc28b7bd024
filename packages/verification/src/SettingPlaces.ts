import { Predicate } from "effect"
import type { FieldErrors } from "@tidegate/model/AuthSettings"
import { genericNames } from "./GenericAuth.ts"
import { ownNames } from "./ProviderAuth.ts"
import { providers } from "./Providers.ts"
import { belongs, besideAuth, meant, maxFaults } from "@tidegate/model/SettingNames"

/** Every name that `auth` accepts anywhere, canonical ones last. */
const names: ReadonlyArray<string> = [...genericNames, ...providers.map(ownNames)].flatMap(({ aliases, names }) =>
  aliases.concat(names)
)

/** The correct place of each verification setting, by the meaning of its name. */
const places: ReadonlyMap<string, string> = new Map([
  ...names.map((name) => [meant(name), `config.auth.${name}`] as const),
  ...besideAuth
])

/**
 * Errors for members of one level of a written source (`at`: "" or "config") that are misplaced or misspelled verification settings;
 * `known` are the valid names of this level. Other unknown members are ignored, but these are refused: their author believes that the
 * source verifies, and dropping them would leave it open.
 */
export const misplacedSettings = (at: "" | "config", members: unknown, known: ReadonlyArray<string>): FieldErrors => {
  if (!Predicate.isObject(members)) return []
  const prefix = at === "" ? "" : `${at}.`
  return Object.keys(members)
    .filter((name) => !known.includes(name))
    .flatMap((name) => {
      const place = names.includes(name) ? `config.auth.${name}` : places.get(meant(name))
      if (place === undefined) return []
      const isOfThisLevel = place.startsWith(prefix) && !place.slice(prefix.length).includes(".")
      return [{ path: prefix + name, message: isOfThisLevel ? `is written ${place}` : belongs(place) }]
    })
    .slice(0, maxFaults)
}
