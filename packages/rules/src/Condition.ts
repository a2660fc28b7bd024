import { isJsonObject } from "@tidegate/json/ExactNumber"
import { maxPathLength, parsePath, positionOf } from "@tidegate/json/JsonPath"
import { didYouMean } from "@tidegate/model/NearestName"
import type { Resumable } from "@tidegate/runtime/Resumable"
import { below, refuse } from "./ConditionInvalid.ts"
import { anyElement, type Condition, someElement, type Test } from "./Evaluation.ts"
import { equalTo, equalToReference, type Operator, operatorNames, operatorOf, type Read } from "./Operators.ts"
import type { PatternBounds } from "./PatternBounds.ts"

/**
 * Compiles a condition of the filter language into closures.
 *
 * - A plain value matches an equal value, or an array with an equal element. A list matches if each of its items is matched by some
 *   element. An object matches if all of its keys match; `{}` matches everything. A missing key matches only `$exist: false`,
 *   also if that is in an `$or` or `$and` of the key.
 * - An object of operators tests the value as a whole, and each operator searches an array by itself. An object
 *   with field names tests an object, so an array of objects needs one element that matches all of its keys.
 * - A key with dots that does not exist literally is a path; if any segment is missing, the key is missing.
 * - An operator's name without `$` is an operator, with two exceptions, in which it is a field: the value is an object with a key of
 *   that name (at the top of a body: any object), or the operator does not accept the operand. With `$` it is always the operator.
 */

/** The kind of value that a condition tests: it decides what a name without `$` means. */
export type Subject =
  /** Any JSON at the top of a document. */
  | "document"
  /** An object whose keys are names and never operators: the parsed query. */
  | "record"
  /** A workflow's run context: a record whose `trigger` is a request. A condition about the request alone may omit `trigger`. */
  | "context"
  /** A record whose names are compared in lower case. */
  | "headers"
  /** A text without fields: the path or the method. */
  | "text"
  /** A value inside a document. */
  | "nested"

/** The kind of each part of a request. */
const partsOfRequest: { readonly [part: string]: Exclude<Subject, "nested"> } = {
  headers: "headers",
  body: "document",
  query: "record",
  path: "text"
}

/** Whether a name in a condition can be an operator, with or without `$`. */
export const isOperator = (name: string): boolean => operatorOf(name) !== undefined

type Members = { readonly [key: string]: unknown }

/** Whether a condition names parts of a request, and nothing else. */
export const isOfRequest = (condition: unknown): condition is Members => {
  if (!isJsonObject(condition)) return false
  const names = Object.keys(condition)
  return names.length > 0 && names.every((name) => Object.hasOwn(partsOfRequest, name))
}

interface Part extends Condition {
  /** Whether the key is a field name, and not an operator. */
  readonly field: boolean
}

/**
 * Compiles a condition that is within the limits. Resumable: it yields after each pattern, because patterns take the most time. `path` is the
 * place in the user's input. Throws `ConditionInvalid`.
 */
export const compilingCondition = (
  condition: unknown,
  subject: Exclude<Subject, "nested">,
  path: string,
  patterns: PatternBounds
): Resumable<Condition> => new Compiler(subject === "headers", patterns).value(condition, subject, path)

class Compiler {
  private readonly lowerCase: boolean
  private readonly patterns: PatternBounds

  constructor(lowerCase: boolean, patterns: PatternBounds) {
    this.lowerCase = lowerCase
    this.patterns = patterns
  }

  *value(condition: unknown, subject: Subject, path: string): Resumable<Condition> {
    if (Array.isArray(condition)) {
      if (subject === "text") refuse(path, "takes a text or an object of operators")
      const items = yield* this.items(condition, "nested", path)
      return { test: list(items.map((item) => item.test)), absent: false }
    }
    if (subject === "context" && isOfRequest(condition)) return yield* this.request(condition, path)
    if (isJsonObject(condition)) return yield* this.object(condition, subject, path)
    if (subject === "text" && typeof condition !== "string") refuse(path, "takes a text or an object of operators")
    return { test: equalTo(condition), absent: false }
  }

  /** Compiles a condition on the request that is the `trigger` of a run's context. */
  private *request(condition: Members, path: string): Resumable<Condition> {
    const tests: Array<Test> = []
    for (const [name, asked] of Object.entries(condition)) {
      const [at, subject] = [below(path, name), partsOfRequest[name]!]
      if ((subject === "headers" || subject === "record") && !isJsonObject(asked)) {
        refuse(at, "takes an object")
      }
      tests.push(field(name, yield* this.value(asked, subject, at)))
    }
    return { test: field("trigger", { test: all(tests), absent: false }), absent: false }
  }

  private *items(
    conditions: ReadonlyArray<unknown>,
    subject: Subject,
    path: string
  ): Resumable<ReadonlyArray<Condition>> {
    const items: Array<Condition> = []
    for (const [i, item] of conditions.entries()) items.push(yield* this.value(item, subject, below(path, i)))
    return items
  }

  private *object(condition: Members, subject: Subject, path: string): Resumable<Condition> {
    const parts: Array<Part> = []
    for (const key of Object.keys(condition)) {
      parts.push(yield* this.part(key, condition[key], subject, below(path, key)))
    }
    if (parts.length === 0) return { test: () => true, absent: false }
    const whole = all(parts.map((part) => part.test))
    return {
      test: parts.some((part) => part.field)
        ? anyElement((value, scope) => isJsonObject(value) && whole(value, scope))
        : whole,
      absent: parts.every((part) => part.absent)
    }
  }

  private *part(key: string, operand: unknown, subject: Subject, path: string): Resumable<Part> {
    switch (key) {
      case "$or":
      case "$and": {
        if (!Array.isArray(operand)) return refuse(path, "takes a list of conditions")
        const items = yield* this.items(operand, subject, path)
        const tests = items.map((item) => item.test)
        return key === "$or"
          ? { test: any(tests), absent: items.some((item) => item.absent), field: false }
          : { test: all(tests), absent: items.length > 0 && items.every((item) => item.absent), field: false }
      }
      case "$not": {
        const { test } = yield* this.value(operand, subject, path)
        return { test: (value, scope) => !test(value, scope), absent: false, field: false }
      }
      case "$ref":
        return { test: equalToReference(this.reference(operand, path)), absent: false, field: false }
    }
    const operator = operatorOf(key)
    if (operator === undefined) {
      if (key.startsWith("$"))
        refuse(path, `is not an operator: there are ${operatorNames}${didYouMean(key, operatorNames.split(", "))}`)
      if (subject === "text") refuse(path, "is not an operator, and a text has no fields")
    } else if (key.startsWith("$") || subject === "text") {
      return { ...(yield* this.operator(operator, operand, path)), field: false }
    } else if ((subject === "document" || subject === "nested") && takes(operator, operand)) {
      return yield* this.ambiguous(operator, key, operand, subject === "document", path)
    }
    return { ...(yield* this.field(subject === "headers" ? key.toLowerCase() : key, operand, path)), field: true }
  }

  /** An operator's name without `$`: the tested value decides which of the two meanings applies. */
  private *ambiguous(operator: Operator, key: string, operand: unknown, atTop: boolean, path: string): Resumable<Part> {
    const asOperator = yield* this.operator(operator, operand, path)
    const asField = yield* this.field(key, operand, path)
    return {
      test: (value, scope) =>
        isJsonObject(value) && (atTop || Object.hasOwn(value, key))
          ? asField.test(value, scope)
          : asOperator.test(value, scope),
      absent: asOperator.absent,
      field: false
    }
  }

  private *field(key: string, condition: unknown, path: string): Resumable<Condition> {
    return { test: field(key, yield* this.value(condition, "nested", path)), absent: false }
  }

  private *operator(operator: Operator, operand: unknown, path: string): Resumable<Condition> {
    if (isReference(operand)) {
      if (operator.compileReference === null) return refuse(path, "does not take a $ref")
      return { test: operator.compileReference(this.reference(operand.$ref, below(path, "$ref"))), absent: false }
    }
    if (!operator.accepts(operand)) return refuse(path, `takes ${operator.takes}`)
    const test = operator.compile(operand, this.patterns)
    if (typeof test === "string") return refuse(path, test)
    if (operator.isLong === true) yield
    return { test, absent: operator.acceptsAbsence?.(operand) ?? false }
  }

  /**
   * Reads the value at a path of the tested document; the whole text may be a literal key of it. The first `[$index]` of a path is the index
   * in the outermost array around the tested value, and so on.
   */
  private reference(text: unknown, path: string): Read {
    if (typeof text !== "string") return refuse(path, "takes a path as text")
    const name = this.lowerCase ? text.toLowerCase() : text
    const segments = parsePath(name)
    if (segments === null || segments.some((segment) => segment.kind === "each")) {
      return refuse(path, "is not a path like a.b, a[0].b or a[$index].b")
    }
    return (scope) => {
      if (!scope.spend(segments.length)) return undefined
      let value: unknown = scope.root
      if (isJsonObject(value) && Object.hasOwn(value, name)) return value[name]
      let enclosing = 0
      for (const segment of segments) {
        if (Array.isArray(value)) {
          if (segment.kind === "key") value = value[positionOf(segment.key)]
          else if (segment.kind === "index") value = value[segment.index]
          else value = enclosing < scope.depth ? value[scope.indexes[enclosing++] ?? -1] : undefined
        } else if (segment.kind === "key" && isJsonObject(value) && Object.hasOwn(value, segment.key)) {
          value = value[segment.key]
        } else {
          return undefined
        }
      }
      return value
    }
  }
}

const isReference = (operand: unknown): operand is { readonly $ref: unknown } =>
  isJsonObject(operand) && Object.hasOwn(operand, "$ref") && Object.keys(operand).length === 1

/** Whether the operator accepts this operand: if not, its name without `$` is a field. */
export const takes = (operator: Operator, operand: unknown): boolean =>
  isReference(operand) ? operator.compileReference !== null : operator.accepts(operand)

const all = (tests: ReadonlyArray<Test>): Test => {
  const [first, second] = tests
  if (first !== undefined && tests.length === 1) return first
  if (first !== undefined && second !== undefined && tests.length === 2) {
    return (value, scope) => first(value, scope) && second(value, scope)
  }
  return (value, scope) => {
    if (!scope.spend(tests.length)) return false
    for (let i = 0; i < tests.length; i++) if (!tests[i]!(value, scope)) return false
    return true
  }
}

const any =
  (tests: ReadonlyArray<Test>): Test =>
  (value, scope) => {
    if (!scope.spend(tests.length)) return false
    for (let i = 0; i < tests.length; i++) if (tests[i]!(value, scope)) return true
    return false
  }

/** A list as a condition: each item is matched by some element of the array. */
const list = (items: ReadonlyArray<Test>): Test => {
  const every = all(items.map((item) => (value, scope) => Array.isArray(value) && someElement(value, item, scope)))
  return (value, scope) => Array.isArray(value) && every(value, scope)
}

/** The test of an object's field. Own keys only: prototypes are not read. */
const field = (key: string, child: Condition): Test => {
  const path = key.length <= maxPathLength ? key.split(".") : [key]
  const follow = path.length === 1 || path.includes("") ? null : followPath(path, child)
  return (object, scope) => {
    if (!isJsonObject(object)) return false
    if (!Object.hasOwn(object, key)) return follow === null ? child.absent : follow(object, scope)
    const value = object[key]
    return value === undefined ? child.absent : child.test(value, scope)
  }
}

/** A dotted path. In an array, a numeric segment is an index; any other is a key of any element. */
const followPath = (path: ReadonlyArray<string>, child: Condition): Test =>
  path.reduceRight((rest: Test, key): Test => {
    const position = positionOf(key)
    const step: Test = (value, scope) => {
      let next: unknown
      if (Array.isArray(value)) {
        if (position < 0) return someElement(value, step, scope)
        next = value[position]
      } else if (isJsonObject(value) && Object.hasOwn(value, key)) {
        next = value[key]
      }
      return next === undefined ? child.absent : rest(next, scope)
    }
    return step
  }, child.test)
