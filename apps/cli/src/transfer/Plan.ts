import { didYouMean } from "@tidegate/model/NearestName"
import { type CliFailure, usage } from "../Failure.ts"
import { noAccount, severalAccounts } from "./Accounts.ts"
import { hasCredentials, type Kind, kindOf, kinds, singular } from "./Entries.ts"
import type { Inventory } from "./Inventory.ts"
import type { Entry, Row } from "./Kind.ts"
import { referencesIn, targets } from "./References.ts"
import { normalRules, referred } from "./Rules.ts"
import { covers, type Reference, referenceTo, resolve } from "./Secrets.ts"
import { type Change, changesOf } from "./Values.ts"
import { isObject, type Json, type JsonObject, type Path, textOf } from "./Json.ts"
import type { Parsed } from "./Yaml.ts"

/** Maximum number of entries of a kind: more than a team has. */
const maxEntries = 5_000

/** A resource of the file, together with the gateway's. */
export interface Step {
  readonly kind: Kind
  readonly action: "create" | "update" | "unchanged" | "delete"
  /** The wanted entry, with secrets in plain text. Of a resource that is deleted, the present one. */
  readonly wanted: Entry
  readonly current: { readonly row: Row; readonly entry: Entry } | null
  /** The members that differ. */
  readonly changed: ReadonlyArray<string>
  /** The values that differ, without secrets. */
  readonly changes: ReadonlyArray<Change>
  /** A destination's present and wanted URL, in the form that is shown, if they differ. */
  readonly moved: { readonly from: string; readonly to: string } | null
  /** The variables whose values this step writes. */
  readonly read: ReadonlyArray<Reference>
  readonly line: number
}

export interface Plan {
  readonly steps: ReadonlyArray<Step>
  /** Variables that are not used: the gateway keeps the secrets that it has. */
  readonly kept: ReadonlyArray<string>
}

const version = 1

/** All errors of a file, each with its line. */
class Faults {
  readonly #found: Array<string> = []
  readonly #name: string
  readonly #lineOf: Parsed["lineOf"]

  constructor(name: string, lineOf: Parsed["lineOf"]) {
    this.#name = name
    this.#lineOf = lineOf
  }

  add(path: Path, message: string): void {
    if (this.#found.length < 20) this.#found.push(`${this.#name}:${this.#lineOf(path)}: ${message}`)
  }

  get failure(): CliFailure | null {
    return this.#found.length === 0 ? null : usage(this.#found.join("\n"))
  }
}

/** The entries of a file by kind; checks what can be checked without the gateway. */
const entriesOf = (value: Json, faults: Faults): Readonly<Record<Kind, ReadonlyArray<Entry | null>>> => {
  const file: JsonObject = isObject(value) ? value : {}
  if (!isObject(value)) faults.add([], `the file must have some of ${kinds.join(", ")}`)
  else if (value["version"] !== version) faults.add(["version"], `version must be ${version}`)
  for (const name of Object.keys(file)) {
    if (name !== "version" && !(kinds as ReadonlyArray<string>).includes(name))
      faults.add([name], `${name} is not known${didYouMean(name, ["version", ...kinds])}`)
  }
  const entries = (kind: Kind): ReadonlyArray<Entry | null> => {
    const list = file[kind] ?? []
    if (!Array.isArray(list)) {
      faults.add([kind], `${kind} must be a list`)
      return []
    }
    if (list.length > maxEntries) {
      faults.add([kind], `there may be at most ${maxEntries} ${kind}`)
      return []
    }
    const names = new Set<unknown>()
    const { members, needed, read = (entry: Entry) => entry } = kindOf(kind)
    const known = ["name", ...members]
    return list.map((entry: Json, index): Entry | null => {
      const path = [kind, index]
      if (!isObject(entry)) {
        faults.add(path, `a ${singular[kind]} must have a name and settings`)
        return null
      }
      for (const name of Object.keys(entry)) {
        if (!known.includes(name))
          faults.add([...path, name], `a ${singular[kind]} has no ${name}${didYouMean(name, known)}`)
      }
      const lacking = ["name", ...needed].filter((name) => entry[name] === undefined || entry[name] === null)
      for (const name of lacking) faults.add(path, `${name} is needed`)
      const { name } = entry
      if (typeof name !== "string" || lacking.length > 0) return null
      if (names.has(name)) faults.add([...path, "name"], `there is another ${singular[kind]} ${name}`)
      names.add(name)
      return read(entry as Entry)
    })
  }
  return Object.fromEntries(kinds.map((kind) => [kind, entries(kind)])) as unknown as ReturnType<typeof entriesOf>
}

/**
 * Converts rules to the gateway's form, and checks that everything that the connection and its rules refer to exists, in the gateway or in the
 * file.
 */
const connectionOf = (
  entry: Entry,
  path: Path,
  isKnown: (kind: Kind, name: Json) => boolean,
  faults: Faults
): Entry => {
  for (const [member, kind] of [
    ["source", "sources"],
    ["destination", "destinations"]
  ] as const) {
    if (!isKnown(kind, entry[member]!)) faults.add([...path, member], `there is no ${member} ${textOf(entry[member])}`)
  }
  if (entry["rules"] === undefined) return entry
  const normal = normalRules(entry["rules"] ?? [])
  if ("message" in normal) {
    faults.add([...path, "rules", ...(normal.index === null ? [] : [normal.index])], normal.message)
    return entry
  }
  for (const [index, rule] of normal.rules.entries()) {
    for (const { kind, name } of referred) {
      const named = isObject(rule) ? rule[name] : undefined
      if (named !== undefined && !isKnown(kind, named)) {
        faults.add([...path, "rules", index], `there is no ${name} ${textOf(named)}`)
      }
    }
  }
  return { ...entry, rules: normal.rules }
}

const isSame = (kind: Kind, member: string, current: Entry | undefined, wanted: Entry): boolean => {
  if (current === undefined) return false
  const { isSame = () => covers(current[member], wanted[member]!) } = kindOf(kind)
  return isSame(member, current, wanted)
}

/**
 * The entry without the credentials of an action that has some of this mode, because the gateway shows none that they could be compared
 * with. `left`: the variables that are not used therefore.
 */
const withoutKeptCredentials = (
  kind: Kind,
  entry: Entry,
  current: Step["current"]
): { readonly written: Entry; readonly left: ReadonlyArray<string> } => {
  const { config } = entry
  const stored = current?.entry["config"]
  if (kind !== "actions" || !isObject(config) || current === null || !hasCredentials(current.row)) {
    return { written: entry, left: [] }
  }
  const { credentials, ...rest } = config
  const mode = rest["auth_mode"]
  const isOther = mode !== undefined && isObject(stored) && mode !== stored["auth_mode"]
  if (isOther || !isObject(credentials)) return { written: entry, left: [] }
  return {
    written: { ...entry, config: rest },
    left: Object.values(credentials).flatMap((value) => referenceTo(value) ?? [])
  }
}

/** The user's own API key must not become a gateway's secret, because a file may come from somebody else. */
const forbidden = "TIDEGATE_API_KEY"

const urlIn = (entry: Entry | undefined): Json | undefined =>
  isObject(entry?.["config"]) ? entry["config"]["url"] : undefined

/** The change of a destination's URL. A URL that comes from a variable is shown by the variable's name. */
const movedOf = (current: Entry | undefined, written: Entry, wanted: Entry): Step["moved"] => {
  const [from, to] = [urlIn(current), urlIn(wanted)]
  if (typeof from !== "string" || typeof to !== "string" || covers(from, to)) return null
  const variable = referenceTo(urlIn(written)!)
  return { from, to: variable === null ? to : `$${variable}` }
}

/** What may be referred to, and how many there are of a name. */
interface Known {
  readonly count: (list: Kind | "provider_accounts", name: string) => number
}

/** Reports references to what does not exist, is not unique, or is created later. */
const checkReferences = (kind: Kind, entry: Entry, path: Path, known: Known, faults: Faults): void => {
  for (const member of kindOf(kind).refers) {
    for (const { name, path: inside, target } of referencesIn(entry[member] ?? null, [...path, member])) {
      const list = targets[target]
      const found = known.count(list, name)
      const isLater =
        list !== "provider_accounts" &&
        (kinds.indexOf(list) > kinds.indexOf(kind) || (list === kind && kind !== "workflows"))
      if (found > 1) {
        faults.add(inside, severalAccounts(name, found))
      } else if (isLater) faults.add(inside, `a ${singular[kind]} cannot refer to a ${target}`)
      else if (found === 0) {
        faults.add(inside, target === "provider_account" ? noAccount(name) : `there is no ${target} ${name}`)
      }
    }
  }
}

export interface Options {
  /** Whether resources that are not in the file are deleted, of the kinds that the file has. */
  readonly prune: boolean
}

/** The steps after which the gateway equals the file. Throws all errors of the file. */
export const planOf = (
  { lineOf, value }: Parsed,
  name: string,
  inventory: Inventory,
  environment: NodeJS.ProcessEnv,
  { prune }: Options = { prune: false }
): Plan => {
  const faults = new Faults(name, lineOf)
  const file = entriesOf(value, faults)
  const isPruned = (kind: Kind): boolean => prune && isObject(value) && value[kind] !== undefined
  const known = {
    count: (list: Kind | "provider_accounts", name: string): number => {
      if (list === "provider_accounts") return inventory.provider_accounts.get(name)?.length ?? 0
      const isInFile = file[list].some((entry) => entry?.name === name)
      return isInFile || (!isPruned(list) && inventory[list].has(name)) ? 1 : 0
    }
  }
  const isKnown = (kind: Kind, name: Json): boolean => typeof name === "string" && known.count(kind, name) > 0
  const kept: Array<string> = []
  const steps = kinds.flatMap((kind) =>
    file[kind].flatMap((entry, index): ReadonlyArray<Step> => {
      if (entry === null) return []
      const path = [kind, index]
      const current = inventory[kind].get(entry.name) ?? null
      const { left, written } = withoutKeptCredentials(kind, entry, current)
      const resolved = resolve(written, current?.entry, environment)
      kept.push(...left, ...resolved.kept)
      for (const { name, path: inside } of [...resolved.read, ...resolved.missing]) {
        if (name.toUpperCase() === forbidden) faults.add([...path, ...inside], `${name} is not given to a file`)
      }
      for (const { name, path: inside } of resolved.missing) {
        faults.add([...path, ...inside], `the variable ${name} is not set, and the gateway has no such secret yet`)
      }
      const complete = resolved.value as Entry
      checkReferences(kind, complete, path, known, faults)
      const wanted = kind === "connections" ? connectionOf(complete, path, isKnown, faults) : complete
      const changed = Object.keys(wanted).filter((member) => !isSame(kind, member, current?.entry, wanted))
      const action = current === null ? "create" : changed.length > 0 ? "update" : "unchanged"
      return [
        {
          kind,
          action,
          wanted,
          current,
          changed: current === null ? [] : changed,
          changes:
            current === null ? [] : changesOf(current.entry, wanted, changed, secretsRead(resolved.read, environment)),
          moved: kind === "destinations" ? movedOf(current?.entry, written, wanted) : null,
          read: resolved.read.filter(({ path: [member] }) => changed.includes(String(member))),
          line: lineOf(path)
        }
      ]
    })
  )
  if (faults.failure !== null) throw faults.failure
  const deleted = kinds.filter(isPruned).flatMap((kind) => {
    const names = new Set(file[kind].map((entry) => entry?.name))
    return [...inventory[kind].values()].flatMap((current): ReadonlyArray<Step> => {
      const { entry } = current
      if (names.has(entry.name)) return []
      const nothing = { changed: [], changes: [], moved: null, read: [], line: lineOf([kind]) }
      return [{ kind, action: "delete", wanted: entry, current, ...nothing }]
    })
  })
  return { steps: [...steps, ...deleted], kept: [...new Set(kept)] }
}

/** The values of these variables, with the names by which they are shown. */
const secretsRead = (read: ReadonlyArray<Reference>, environment: NodeJS.ProcessEnv): ReadonlyMap<string, string> =>
  new Map(read.map(({ name }) => [environment[name] ?? "", `$${name}`]))
