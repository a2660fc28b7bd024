import { Predicate } from "effect"
import type { FieldErrors } from "@tidegate/model/AuthSettings"
import { genericNames } from "./GenericAuth.ts"
import { ownNames } from "./ProviderAuth.ts"
import { providers } from "./Providers.ts"
import { belongs, besideAuth, meant, maxFaults } from "@tidegate/model/SettingNames"

/** Every name that some `auth` accepts, canonical ones last. */
const names: ReadonlyArray<string> = [...genericNames, ...providers.map(ownNames)].flatMap(({ aliases, names }) =>
  aliases.concat(names)
)

/** Where each setting that decides about verification is written, by what its name means. */
const places: ReadonlyMap<string, string> = new Map([
  ...names.map((name) => [meant(name), `config.auth.${name}`] as const),
  ...besideAuth
])

/**
 * The members of one level of a written source (`at`: "" or "config") that mean a setting of its verification and do not
 * stand where, or not as, it is written; `known` are the names that this level has. They are refused and not ignored like
 * other unknown members: who wrote one believes that it verifies, and dropping it would leave the source open.
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
