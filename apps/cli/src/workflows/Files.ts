import { resolve } from "node:path"
import { pathToFileURL } from "node:url"
import { Effect } from "effect"
import { readJson } from "@tidegate/json/JsonText"
import { type CliFailure, failureOf, usage } from "../Failure.ts"
import { readFileAt } from "../Input.ts"
import { isObject } from "../transfer/Json.ts"

/** Files with workflows: JSON, with or without comments, and modules whose default export is one workflow or a list of them. */

/** The largest body of a workflow. */
const largestFile = 2 * 1024 * 1024
const maxWorkflows = 1_000

export interface Members {
  readonly [member: string]: unknown
}
export interface Written extends Members {
  readonly name: string
}

export const isFile = (text: string): boolean => /\.(?:jsonc?|[cm]?[jt]s)$/.test(text)

/** Texts come first, so that what looks like a comment in them stays. */
const commentOrText = /"(?:[^"\\]|\\.)*"|\/\/[^\n]*|\/\*[^]*?\*\//g
const commaOrText = /"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])/g

const withoutComments = (text: string): string =>
  text
    .replace(commentOrText, (found) => (found.startsWith('"') ? found : " "))
    .replace(commaOrText, (found) => (found.startsWith('"') ? found : ""))

export const parseJsonc = (text: string, path: string): unknown => {
  try {
    return readJson(withoutComments(text))
  } catch {
    throw usage(`${path} is not JSON`)
  }
}

/** JSON with comments from a file, or from standard input. */
export const readJsonc = (path: string): Effect.Effect<unknown, CliFailure> =>
  Effect.flatMap(readFileAt(path, largestFile), (bytes) =>
    Effect.try({ try: () => parseJsonc(bytes.toString("utf8"), path), catch: failureOf })
  )

const importing = (path: string): Effect.Effect<unknown, CliFailure> =>
  Effect.tryPromise({
    try: async () => {
      const module = (await import(pathToFileURL(resolve(path)).href)) as { readonly default?: unknown }
      if (module.default === undefined)
        throw usage(`${path} has no default export: export a workflow, or a list of them`)
      // What a builder makes is JSON when it is written.
      return JSON.parse(JSON.stringify(module.default)) as unknown
    },
    catch: (error) => {
      const { code, message } = error as NodeJS.ErrnoException
      if (code === "ERR_UNKNOWN_FILE_EXTENSION")
        return usage(`${path} needs Node 22.18 or later, which reads TypeScript`)
      return (error as { _tag?: string })._tag === "CliFailure" ? failureOf(error) : usage(`${path}: ${message}`)
    }
  })

/** The workflows in a file. */
export const workflowsIn = (path: string): Effect.Effect<ReadonlyArray<Written>, CliFailure> =>
  Effect.flatMap(/\.[cm]?[jt]s$/.test(path) ? importing(path) : readJsonc(path), (value) => {
    const found: ReadonlyArray<unknown> = Array.isArray(value) ? value : [value]
    if (found.length > maxWorkflows) return Effect.fail(usage(`${path} has more than ${maxWorkflows} workflows`))
    const odd = found.findIndex((one) => !isObject(one) || typeof one["name"] !== "string")
    return odd === -1
      ? Effect.succeed(found as ReadonlyArray<Written>)
      : Effect.fail(usage(`${path}: workflow ${odd + 1} is no object with a name`))
  })
