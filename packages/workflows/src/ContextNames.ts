import { parsePath } from "@tidegate/model/JsonPath"
import { didYouMean } from "@tidegate/model/NearestName"
import { isOfRequest } from "@tidegate/rules/Condition"
import { contextRoots } from "@tidegate/templates/Mapping"
import { Predicate } from "effect"

/**
 * The names that a run's context has. Templates and conditions that ask for others never find anything: they are refused when they are
 * written. What is below a body, or a step's output, nobody knows before it is there.
 */

const partsOfRequest = ["headers", "body", "query", "path"] as const

/** By the root; what a root's members have below them is not known. */
const membersOf: { readonly [root: string]: ReadonlyArray<string> } = {
  trigger: ["request_id", "received_at", "method", ...partsOfRequest, "source", "item"],
  run: ["id", "started_at", "attempt"],
  workflow: ["id", "name", "version"],
  source: ["id", "name"]
}

const ofStep = ["status", "output", "error"] as const

/** Names on the way from the root of a context; null for what is no name, but a place in a list. */
export type Way = ReadonlyArray<string | null>

/** What is wrong with a way into a context; null when it may lead somewhere. `known`: the roots that there are. */
export const wayFault = ([root, member, below]: Way, known: ReadonlyArray<string> = contextRoots): string | null => {
  if (root === undefined || root === null) return null
  if (!known.includes(root)) return `${root} is nothing that a run has${didYouMean(root, known)}`
  if (root === "steps") {
    if (below === undefined || below === null || (ofStep as ReadonlyArray<string>).includes(below)) return null
    return `${below} is nothing that a step leaves: there are ${ofStep.join(", ")}${didYouMean(below, ofStep)}`
  }
  const members = membersOf[root]
  if (members === undefined || member === undefined || member === null || members.includes(member)) return null
  return `${root} has no ${member}${didYouMean(member, members)}`
}

/** What a look at a condition finds. */
export interface Findings {
  /** It can never hold; `path` in the condition. */
  readonly fault: (path: string, message: string) => void
  /** It asks about a step. */
  readonly step: (id: string, path: string) => void
  /** It asks about a step's output, by these names behind that; whether they are looked at further. */
  readonly output: (id: string, names: Way, path: string) => boolean
}

const template = 'is a template, and conditions have none: compare with {"$ref": "trigger.body.…"}'

const rootsOfConditions = [...contextRoots, ...partsOfRequest]

/** Looks at the names in a condition: what it asks about, and what it compares with. Its bounds are others' to judge. */
export const lookAtNames = (condition: unknown, findings: Findings): void => {
  // Of a request alone, references begin at the part that they stand in, whose names nobody knows.
  if (isOfRequest(condition)) lookInto(condition, "", findings, false)
  else {
    lookAtRoots(condition, "", findings)
    lookInto(condition, "", findings, true)
  }
}

const below = (path: string, step: string | number): string => {
  if (typeof step === "number") return `${path}[${step}]`
  return path === "" ? step : `${path}.${step}`
}

const lookAtRoots = (condition: unknown, path: string, findings: Findings): void => {
  if (!Predicate.isReadonlyObject(condition) || isOfRequest(condition)) return
  for (const [key, asked] of Object.entries(condition)) {
    const at = below(path, key)
    if (key.startsWith("$")) {
      const parts = Array.isArray(asked)
        ? asked.map((part, i) => [part, below(at, i)] as const)
        : [[asked, at] as const]
      for (const [part, place] of parts) lookAtRoots(part, place, findings)
    } else lookAtWays(key.split("."), asked, at, findings)
  }
}

/** The ways that a name, and those below it, lead: as deep as names are known. `isBehindStep`: the step has been told of. */
const lookAtWays = (
  way: ReadonlyArray<string>,
  asked: unknown,
  path: string,
  findings: Findings,
  isBehindStep = false
): void => {
  const [root, id, part, ...names] = way
  const fault = wayFault(way, rootsOfConditions)
  if (fault !== null) return findings.fault(path, fault)
  if (root === "steps" && id !== undefined && !isBehindStep) findings.step(id, path)
  const isKnown =
    root === "steps"
      ? id === undefined || part === undefined || (part === "output" && findings.output(id, names, path))
      : membersOf[root!] !== undefined && way.length < 2
  if (!isKnown || !Predicate.isReadonlyObject(asked)) return
  for (const [key, inner] of Object.entries(asked)) {
    if (key.startsWith("$")) continue
    lookAtWays([...way, ...key.split(".")], inner, below(path, key), findings, root === "steps" && id !== undefined)
  }
}

/** What a condition compares with: templates, which it has none of, and references. */
const lookInto = (value: unknown, path: string, findings: Findings, areReferencesOfRuns: boolean): void => {
  if (typeof value === "string") {
    if (value.includes("{{") && value.includes("}}")) findings.fault(path, template)
  } else if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) lookInto(item, below(path, i), findings, areReferencesOfRuns)
  } else if (Predicate.isReadonlyObject(value)) {
    for (const [key, inner] of Object.entries(value)) {
      const at = below(path, key)
      if (key === "$ref" && typeof inner === "string") {
        if (areReferencesOfRuns) lookAtReference(inner, at, findings)
      } else lookInto(inner, at, findings, areReferencesOfRuns)
    }
  }
}

const lookAtReference = (text: string, path: string, findings: Findings): void => {
  const way = parsePath(text)?.map((segment) => (segment.kind === "key" ? segment.key : null)) ?? []
  const fault = wayFault(way)
  if (fault !== null) findings.fault(path, fault)
  else if (way[0] === "steps" && typeof way[1] === "string") {
    findings.step(way[1], path)
    if (way[2] === "output") findings.output(way[1], way.slice(3), path)
  }
}
