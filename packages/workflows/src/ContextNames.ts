import { parsePath } from "@tidegate/json/JsonPath"
import { visitJson } from "@tidegate/json/VisitJson"
import { didYouMean } from "@tidegate/model/NearestName"
import { isOfRequest, isOperator } from "@tidegate/rules/Condition"
import { contextRoots } from "@tidegate/interpolation/Mapping"
import { Predicate } from "effect"

/**
 * The names in a run's context. Templates and conditions that use other names never find anything, so they are refused when they
 * are written. The members of a body, or of a step's output, are not known in advance.
 */

const partsOfRequest = ["headers", "body", "query", "path"] as const

/** What a context has at a place: members with known names, a single value without members, or anything. */
type Known = { readonly [name: string]: Known } | "value" | "anything"

const members = (...names: ReadonlyArray<string>): Known => Object.fromEntries(names.map((name) => [name, "value"]))

const ofStep = {
  status: "value",
  output: "anything",
  error: {
    ...(members("code", "message", "status", "retry_after_ms", "final") as object),
    response: { ...(members("status", "truncated") as object), headers: "anything", body: "anything" }
  }
} as const

/** By root name. All steps have the same members, under their ids. */
const knownOf: { readonly [root: string]: Known } = {
  trigger: {
    ...(members("request_id", "received_at", "method", "path") as object),
    headers: "anything",
    body: "anything",
    query: "anything",
    source: members("id", "name"),
    item: "anything",
    batch: "anything"
  },
  run: {
    ...(members("id", "started_at", "attempt") as object),
    /** By the ids of steps that wait: their URLs. */
    waits: "anything"
  },
  workflow: members("id", "name", "version"),
  source: members("id", "name")
}

/** The statuses of a step that others can read; a step that did not run is absent. */
const statuses = ["succeeded", "failed"] as const

/** The names on a path from the root of a context; null for an index of a list. */
export type Way = ReadonlyArray<string | null>

/** What a context has at the end of a path; undefined when nothing is known to be there. */
const knownAt = ([root, ...names]: ReadonlyArray<string>): Known | undefined => {
  let at: Known | undefined = root === "steps" ? ofStep : knownOf[root!]
  for (const name of root === "steps" ? names.slice(1) : names) {
    if (at === undefined || at === "anything") return at
    at = at === "value" || !Object.hasOwn(at, name) ? undefined : at[name]
  }
  return at
}

/** The fault of a path into a context; null when it may find something. `known`: the root names. */
export const wayFault = (way: Way, known: ReadonlyArray<string> = contextRoots): string | null => {
  const [root, ...names] = way
  if (root === undefined || root === null) return null
  if (!known.includes(root)) return `${root} is nothing that a run has${didYouMean(root, known)}`
  const isStep = root === "steps"
  let at: Known | undefined = isStep ? ofStep : knownOf[root]
  let shown = root
  for (const name of isStep ? names.slice(1) : names) {
    if (at === undefined || at === "anything" || name === null) return null
    if (at === "value") return `${shown} is a single value: there is no ${name} in it`
    const there = Object.keys(at)
    if (!there.includes(name)) {
      const meant = didYouMean(name, there)
      return isStep && at === ofStep
        ? `${name} is nothing that a step leaves: there are ${there.join(", ")}${meant}`
        : `${shown} has no ${name}${meant}`
    }
    at = at[name]
    shown = isStep && shown === root ? name : `${shown}.${name}`
  }
  return null
}

/** Callbacks for what is found in a condition. */
export interface Findings {
  /** The condition can never hold; `path` is the place in it. */
  readonly fault: (path: string, message: string) => void
  /** It reads a step. */
  readonly step: (id: string, path: string) => void
  /** It reads a step's output, by these names below it; returns whether to look further. */
  readonly output: (id: string, names: Way, path: string) => boolean
  /** It reads the body of what began the run, by these names below it; returns whether to look further. */
  readonly body: (names: Way, path: string) => boolean
}

const template = 'is a template, and conditions have none: compare with {"$ref": "trigger.body.…"}'

/** A condition is about a run, not about an element of a list: it has no `item`. */
const rootsOfRuns = contextRoots.filter((root) => root !== "item" && root !== "item_index")
const rootsOfConditions = [...rootsOfRuns, ...partsOfRequest]

/** A reference that starts at the run's context, not at the part of a request that it stands in. */
const intoRun =
  /^(?:trigger\.(?:body|headers|query|path|method|request_id|received_at|source|batch)|steps\.[^.[\]]+\.(?:output|status|error))(?:[.[]|$)/

/** Whether a condition compares with a value of the run: then its references start at the run's context, even in a short form. */
export const refersToRun = (condition: unknown): boolean =>
  !visitJson(condition, (value, name) => name !== "$ref" || typeof value !== "string" || !intoRun.test(value))

/** Checks the names in a condition: those that it reads, and those that it compares with. Its size is limited elsewhere. */
export const lookAtNames = (condition: unknown, findings: Findings): void => {
  // In a condition on a request only, references start at the part that they stand in, whose names are not known.
  if (isOfRequest(condition)) lookInto(condition, "", findings, refersToRun(condition))
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

/**
 * Checks the paths of a name and of those below it, as deep as names are known. `isBehindStep`: the step was reported already.
 */
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
  if (root === "steps" && part === "status" && names.length === 0) lookAtStatus(asked, path, findings)
  const known = root === "steps" && id === undefined ? ofStep : knownAt(way)
  const isKnown =
    root === "steps" && id !== undefined && part === "output"
      ? findings.output(id, names, path)
      : root === "trigger" && id === "body"
        ? findings.body(way.slice(2), path)
        : typeof known === "object"
  if (!isKnown || !Predicate.isReadonlyObject(asked)) return
  for (const [key, inner] of Object.entries(asked)) {
    // A name without `$` counts as an operator when there is no member with that name.
    if (key.startsWith("$") || (isOperator(key) && knownAt([...way, key]) === undefined)) continue
    lookAtWays([...way, ...key.split(".")], inner, below(path, key), findings, root === "steps" && id !== undefined)
  }
}

/** Checks the values that a step's status is compared with: it never has any other one. */
const lookAtStatus = (asked: unknown, path: string, findings: Findings): void => {
  if (typeof asked === "string") {
    if ((statuses as ReadonlyArray<string>).includes(asked)) return
    const message = `${asked} is no status that can be read of a step: there are ${statuses.join(", ")}`
    findings.fault(path, `${message}${didYouMean(asked, statuses)}`)
  } else if (Predicate.isReadonlyObject(asked)) {
    for (const operator of ["$eq", "eq"]) {
      if (Object.hasOwn(asked, operator)) lookAtStatus(asked[operator], below(path, operator), findings)
    }
  }
}

/** Checks the values that a condition compares with: it may contain references but no templates. */
const isTemplate = (text: string): boolean => text.includes("{{") && text.includes("}}")

const lookInto = (value: unknown, path: string, findings: Findings, areReferencesOfRuns: boolean): void => {
  if (typeof value === "string") {
    if (isTemplate(value)) findings.fault(path, template)
  } else if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) lookInto(item, below(path, i), findings, areReferencesOfRuns)
  } else if (Predicate.isReadonlyObject(value)) {
    for (const [key, inner] of Object.entries(value)) {
      const at = below(path, key)
      if (isTemplate(key)) findings.fault(at, template)
      if (key === "$ref" && typeof inner === "string") {
        if (areReferencesOfRuns) lookAtReference(inner, at, findings)
      } else lookInto(inner, at, findings, areReferencesOfRuns)
    }
  }
}

const lookAtReference = (text: string, path: string, findings: Findings): void => {
  const way = parsePath(text)?.map((segment) => (segment.kind === "key" ? segment.key : null)) ?? []
  const fault = wayFault(way, rootsOfRuns)
  if (fault !== null) findings.fault(path, fault)
  else if (way[0] === "steps" && typeof way[1] === "string") {
    findings.step(way[1], path)
    if (way[2] === "output") findings.output(way[1], way.slice(3), path)
  } else if (way[0] === "trigger" && way[1] === "body") findings.body(way.slice(2), path)
}
