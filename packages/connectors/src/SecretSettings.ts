import { Predicate, Result, type Schema } from "effect"
import type { Connector } from "./Connector.ts"
import type { Config, FieldErrors } from "./Settings.ts"

/**
 * Settings that are secrets themselves, such as a URL with which anybody can post. They are stored with the encrypted auth, and are masked
 * on read.
 */

/** The member of a stored auth that holds them. No `auth_type` has a setting of this name. */
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

/** Settings and auth in their stored form: secret settings are moved into the auth. */
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

/** The reverse. Also works for a row that was stored before the setting became a secret. */
export const unsealed = <C extends Config>({ auth, config }: Stored<C>): Stored<C> => {
  const { [member]: secrets, ...rest } = auth
  return isObject(secrets) ? { config: Object.assign({}, config, secrets), auth: rest } : { config, auth }
}

/** The secret settings of a config. For a URL also the parts that a target may repeat: path and query, and the path segments that are masked. */
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

/** Settings in the form of a read. */
export const masked = ({ settings }: Connector, config: Config): Config =>
  Object.fromEntries(
    Object.entries(config).map(([name, value]) => {
      const mask = settings[name]?.mask
      return [name, mask === undefined || typeof value !== "string" ? value : mask(value)]
    })
  )

/** Restores stored secrets where the written config repeats their masks. Any other mask is an error, and is never stored as a secret. */
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
