import { Predicate, Result, type Schema } from "effect"
import type { Connector } from "./Connector.ts"
import type { Config, FieldErrors } from "./Settings.ts"

/**
 * Settings that are secrets themselves, like a URL that lets whoever knows it post. They are stored with the auth, which is encrypted,
 * and read masked.
 */

/** The member of a stored auth that holds them. No way to authenticate has one of this name. */
const member = "settings"

const isObject = (value: unknown): value is Schema.JsonObject =>
  Predicate.isReadonlyObject(value) && !Array.isArray(value)

const secretNames = ({ settings }: Pick<Connector, "settings">): ReadonlyArray<string> =>
  Object.entries(settings).flatMap(([name, one]) => (one.mask === undefined ? [] : [name]))

export const hasSecrets = (row: Pick<Connector, "settings"> | undefined): boolean =>
  row !== undefined && secretNames(row).length > 0

export interface Stored<C extends Config = Config> {
  readonly config: C
  readonly auth: Schema.JsonObject
}

/** Settings and auth as they are stored: what is secret stands in the auth. */
export const sealed = (row: Connector, { auth, config }: Stored): Stored => {
  const names = new Set(secretNames(row))
  const isSecret = ([name, value]: readonly [string, Schema.Json]): boolean => names.has(name) && value !== null
  const entries = Object.entries(config)
  const secrets = entries.filter(isSecret)
  return secrets.length === 0
    ? { config, auth }
    : {
        config: Object.fromEntries(entries.filter((entry) => !isSecret(entry))),
        auth: Object.assign({}, auth, { [member]: Object.fromEntries(secrets) })
      }
}

/** The same as they were written. Also of a row that is older than the secrecy of a setting. */
export const unsealed = <C extends Config>({ auth, config }: Stored<C>): Stored<C> => {
  const { [member]: secrets, ...rest } = auth
  return isObject(secrets) ? { config: Object.assign({}, config, secrets), auth: rest } : { config, auth }
}

/** The settings of a config that are secrets; of a URL also what a target may say of it: its path and query, and the parts of the path that are not shown. */
export const secretsIn = (row: Connector, config: Config): ReadonlyArray<string> =>
  secretNames(row).flatMap((name) => {
    const value = config[name]
    return typeof value === "string" ? partsOf(value, row.settings[name]!.mask!(value)) : []
  })

const partsOf = (secret: string, shown: string): ReadonlyArray<string> => {
  const url = URL.parse(secret)
  if (url === null || url.pathname === "/") return [secret]
  const known = new Set(shown.split("/"))
  const hidden = url.pathname.split("/").filter((part) => part !== "" && !known.has(part))
  return [secret, url.pathname + url.search, ...hidden]
}

/** Settings as a read shows them. */
export const masked = ({ settings }: Connector, config: Config): Config =>
  Object.fromEntries(
    Object.entries(config).map(([name, value]) => {
      const mask = settings[name]?.mask
      return [name, mask === undefined || typeof value !== "string" ? value : mask(value)]
    })
  )

/** Puts stored secrets back where what is written repeats their masks. A mask of anything else is a fault, and never taken for a secret. */
export const unmasked = (row: Connector, written: Config, stored: Config): Result.Result<Config, FieldErrors> => {
  const restored: Record<string, Schema.Json> = { ...written }
  const faults: Array<FieldErrors[number]> = []
  for (const name of secretNames(row)) {
    const [value, secret] = [written[name], stored[name]]
    if (typeof value !== "string" || !value.includes("****")) continue
    if (typeof secret === "string" && row.settings[name]?.mask?.(secret) === value) restored[name] = secret
    else
      faults.push({
        path: `config.${name}`,
        message: "is masked and matches no stored secret: write the secret itself"
      })
  }
  return faults.length === 0 ? Result.succeed(restored) : Result.fail(faults)
}
