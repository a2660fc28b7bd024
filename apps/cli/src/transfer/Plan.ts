import { didYouMean } from "@tidegate/model/NearestName"
import { type CliFailure, usage } from "../Failure.ts"
import { type Entry, type Kind, kinds, members, needed, normalRules, referred, type Row, singular } from "./Entries.ts"
import type { Inventory } from "./Inventory.ts"
import { covers, type Reference, referenceTo, resolve } from "./Secrets.ts"
import { isObject, type Json, type JsonObject, type Parsed, type Path, textOf } from "./Yaml.ts"

/** Maximum number of entries of a kind: more than a team has. */
const maxEntries = 5_000

/** A resource of the file, together with the gateway's. */
export interface Step {
  readonly kind: Kind
  readonly action: "create" | "update" | "unchanged"
  /** The wanted entry, with secrets in plain text. */
  readonly wanted: Entry
  readonly current: { readonly row: Row; readonly entry: Entry } | null
  /** The members that differ. */
  readonly changed: ReadonlyArray<string>
  /** A destination's present and wanted URL, in the form that is shown, if they differ. */
  readonly moved: { readonly from: string; readonly to: string } | null
  /** The variables whose values this step writes. */
  readonly read: ReadonlyArray<Reference>
  readonly line: number
}

export interface Plan {
  readonly steps: ReadonlyArray<Step>
  /** Variables that are not set: the gateway keeps its secrets. */
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
  if (!isObject(value))
    faults.add([], "the file must have filters, transformations, sources, destinations or connections")
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
    return list.map((entry: Json, index): Entry | null => {
      const path = [kind, index]
      if (!isObject(entry)) {
        faults.add(path, `a ${singular[kind]} must have a name and settings`)
        return null
      }
      for (const name of Object.keys(entry)) {
        if (!members[kind].includes(name))
          faults.add([...path, name], `a ${singular[kind]} has no ${name}${didYouMean(name, members[kind])}`)
      }
      const lacking = needed[kind].filter((name) => entry[name] === undefined || entry[name] === null)
      for (const name of lacking) faults.add(path, `${name} is needed`)
      const { name } = entry
      if (typeof name !== "string" || lacking.length > 0) return null
      if (names.has(name)) faults.add([...path, "name"], `there is another ${singular[kind]} ${name}`)
      names.add(name)
      return entry as Entry
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

/** Members that are replaced as a whole, so that a removed part is a change. In other members, parts that are not written stay unchanged. */
const replaced: ReadonlySet<string> = new Set(["rules", "conditions"])

const isSame = (member: string, current: Json | undefined, wanted: Json): boolean =>
  covers(current, wanted) && (!replaced.has(member) || current === undefined || covers(wanted, current))

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

/** The steps after which the gateway equals the file. Throws all errors of the file. */
export const planOf = (
  { lineOf, value }: Parsed,
  name: string,
  inventory: Inventory,
  environment: NodeJS.ProcessEnv
): Plan => {
  const faults = new Faults(name, lineOf)
  const file = entriesOf(value, faults)
  const isKnown = (kind: Kind, name: Json): boolean =>
    typeof name === "string" && (inventory[kind].has(name) || file[kind].some((entry) => entry?.name === name))
  const kept: Array<string> = []
  const steps = kinds.flatMap((kind) =>
    file[kind].flatMap((written, index): ReadonlyArray<Step> => {
      if (written === null) return []
      const path = [kind, index]
      const current = inventory[kind].get(written.name) ?? null
      const resolved = resolve(written, current?.entry, environment)
      kept.push(...resolved.kept)
      for (const { name, path: inside } of [...resolved.read, ...resolved.missing]) {
        if (name.toUpperCase() === forbidden) faults.add([...path, ...inside], `${name} is not given to a file`)
      }
      for (const { name, path: inside } of resolved.missing) {
        faults.add([...path, ...inside], `the variable ${name} is not set, and the gateway has no such secret yet`)
      }
      const complete = resolved.value as Entry
      const wanted = kind === "connections" ? connectionOf(complete, path, isKnown, faults) : complete
      const changed = Object.entries(wanted).flatMap(([member, value]) =>
        isSame(member, current?.entry[member], value) ? [] : [member]
      )
      const action = current === null ? "create" : changed.length > 0 ? "update" : "unchanged"
      return [
        {
          kind,
          action,
          wanted,
          current,
          changed: current === null ? [] : changed,
          moved: kind === "destinations" ? movedOf(current?.entry, written, wanted) : null,
          read: resolved.read.filter(({ path: [member] }) => changed.includes(String(member))),
          line: lineOf(path)
        }
      ]
    })
  )
  if (faults.failure !== null) throw faults.failure
  return { steps, kept: [...new Set(kept)] }
}
